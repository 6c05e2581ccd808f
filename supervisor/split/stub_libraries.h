/*
 * stub_libraries.h - how programs come to load trecr's libraries in place of others: by
 * LD_AUDIT (stubs/audit), of which kinds is in the environment of a program.
 */
#ifndef SUPERVISOR_SPLIT_STUB_LIBRARIES_H
#define SUPERVISOR_SPLIT_STUB_LIBRARIES_H

#include "lib/err.h"

/* The way from the tools' folder to the libraries', where both are installed. */
#ifndef TRECR_FROM_BIN
#define TRECR_FROM_BIN "../lib/trecr"
#endif

/* The library for LD_AUDIT that is called @file: beside the tools in the build tree, or where
 * `make install` puts it, in a folder of this release, which programs still hold when
 * another one is installed. NULL: not there. For the caller to free. */
char *stubs_find_audit(const char *file);

/* The folder that this release is installed in, with its trecr-restart; NULL: it is not installed.
 * To be asked at the start, before another one is. For the caller to free. */
char *stubs_find_release(void);

/* The variable that says which kinds of libraries are exchanged in a program. */
#define STUB_KINDS "TRECR_STUBS"

/* Have programs that this process starts from now on load the stubs of @kind, "gpu" or "mpi",
 * by
 * @audit. */
int stubs_load(const char *kind, const char *audit, struct err *e);

#endif
