/* modules.h - functions of modules, by a function of a hidden table (export_table.c hands it
 * out). */
#ifndef STUBS_CUDA_MODULES_H
#define STUBS_CUDA_MODULES_H

#include <stddef.h>

#include "stubs/library.h"

/* Its number in the table. */
enum { MODULE_FUNCTIONS = 7 };

/* What stands in front of number @i, which crosses as @function. */
STUB_HIDDEN void *modules_stand_in(size_t i, void *function);

/* Each function of @module is handed to @take, and how many that are is returned. (So libcufft
 * finds the one function of a module whose name it does not know.) */
typedef void take_function(void *data, void *function);
typedef int module_functions(void *context, void *module, take_function *take, void *data);

STUB_HIDDEN module_functions body_module_functions;
/* The way to the body: record_entry.S */
STUB_HIDDEN module_functions guarded_module_functions;

#endif
