/*
 * module.h - kernels: what a function of a module stands for, and a launch of one.
 */
#ifndef T_SIM_MODULE_H
#define T_SIM_MODULE_H

#include <stdint.h>

struct sim_graph;

struct kernel_call {
	uint64_t threads;
	uint64_t a, b, c; /* parameters */
	const void *context;
	struct sim_graph *graph; /* an executable one, of which it is part; NULL */
};

typedef void kernel_function(const struct kernel_call *call);

/* kernels.c. NULL: there is none. */
kernel_function *kernel_find(const char *name);
const char *kernel_name(unsigned index);
/* module.c. What a function or kernel of the program's stands for, loaded from now on; NULL: it
 * is no such thing. */
kernel_function *function_to_run(void *handle, const char *function);
/* What libraries had in it. */
void module_context_gone(void *context);

#endif
