/*
 * gpu_libraries.h - programs that use a GPU: how they come to load trecr's libraries in place
 * of the driver's (stubs/audit), so that they can be checkpointed.
 */
#ifndef SUPERVISOR_SPLIT_GPU_LIBRARIES_H
#define SUPERVISOR_SPLIT_GPU_LIBRARIES_H

#include "lib/err.h"

enum gpu_use {
	GPU_AUTO, /* where the machine has a driver */
	GPU_ON,
	GPU_OFF,
};

/* For opts.h: "auto", "on" or "off" into an enum gpu_use. */
int gpu_option(void *field, const char *value, struct err *e);

/* Have programs that this process starts from now on load them: by its environment. With
 * GPU_ON it is an error when the libraries are not installed. With @coverage, which implies it,
 * they note in that file what functions of the driver are used. */
int gpu_prepare(enum gpu_use use, const char *coverage, struct err *e);

/* The programs have ended: each function once, in alphabetical order. */
void gpu_finish_coverage(const char *coverage);

#endif
