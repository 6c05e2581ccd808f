/* export_entry.h - ways to functions of hidden tables (export_entry.S). */
#ifndef STUBS_CUDA_EXPORT_ENTRY_H
#define STUBS_CUDA_EXPORT_ENTRY_H

#define EXPORT_ENTRIES    1024
#define EXPORT_ENTRY_SIZE 16 /* bytes of one way */

#ifndef __ASSEMBLER__
#include "stubs/library.h"

extern STUB_HIDDEN char cuda_export_entry[];
/* Where each leads to: export_entry_first() until it has been called. */
extern STUB_HIDDEN void *cuda_export_entry_targets[EXPORT_ENTRIES];
STUB_HIDDEN void export_entry_first(void);
/* From there: the first call by the way whose target is *@target, which leads to the driver's
 * function then. In the lower half, on its thread-local storage. */
STUB_HIDDEN void export_entry_used(void **target);
/* In the library that counts what is used (stubs/coverage.c), else NULL. */
__attribute__((weak)) STUB_HIDDEN void coverage_export_entry(
	const unsigned char id[16], unsigned slot);
#endif

#endif
