/* context_storage.h - what runtime libraries keep with a context, by functions of a hidden
 * table (export_table.c hands it out). */
#ifndef STUBS_CUDA_CONTEXT_STORAGE_H
#define STUBS_CUDA_CONTEXT_STORAGE_H

#include <stddef.h>

#include "stubs/library.h"

/* Their numbers in the table. */
enum { STORAGE_PUT, STORAGE_DELETE, STORAGE_GET, STORAGE_FUNCTIONS };

/* What stands in front of number @i of them, which crosses as @function. */
STUB_HIDDEN void *storage_stand_in(size_t i, void *function);

/* @context NULL: the current one. */
typedef int storage_put(void *context, void *key, void *value, void *destructor);
typedef int storage_delete(void *context, void *key);
typedef int storage_get(void **value, void *context, void *key);

extern STUB_HIDDEN storage_get *real_storage_get;

STUB_HIDDEN storage_put body_storage_put;
STUB_HIDDEN storage_delete body_storage_delete;
STUB_HIDDEN storage_get body_storage_get; /* query_cache.c */

/* Ways to the bodies: record_entry.S */
STUB_HIDDEN storage_put guarded_storage_put;
STUB_HIDDEN storage_delete guarded_storage_delete;
STUB_HIDDEN storage_get guarded_storage_get;

#endif
