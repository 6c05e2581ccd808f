/*
 * start.h - brings a lower half up in the process it is called in.
 */
#ifndef BRINGUP_START_H
#define BRINGUP_START_H

#include "shared/table.h"

struct lower_start {
	const char *core;         /* path of trecr-lower-core */
	const char *runtime;      /* path of trecr-lower */
	const char *ldso;         /* NULL: the one trecr-lower asks for */
	const char *library_path; /* where it looks for libraries first; may be NULL */
	int fd_base;              /* where its descriptors begin; 0: to be chosen */
	char *const *environment; /* the program's; what concerns its ld.so is left out */
};

/*
 * Map everything, start the lower half's first thread and wait until it is ready. The caller
 * sees to it that this happens once, with all signals blocked. Returns 0, or -errno with
 * what was being done in *step, static text; then the window holds remains.
 */
int lower_start(const struct lower_start *how, struct lower_table **table, const char **step);

#endif
