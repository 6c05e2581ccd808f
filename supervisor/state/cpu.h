/*
 * cpu.h - what a program may have chosen its code by: processor features.
 */
#ifndef SUPERVISOR_STATE_CPU_H
#define SUPERVISOR_STATE_CPU_H

#include <stdint.h>

#include "lib/err.h"

#define CPU_WORDS 8 /* as image_job.cpuid */

/* CPUID words of this processor, with the bits that matter to programs only; XCR0. */
void cpu_features(uint32_t words[CPU_WORDS], uint64_t *xfeatures);

/* Bytes of an XSAVE area with all that is enabled, in the standard format. */
uint32_t cpu_xsave_size(void);

/* Fails and names them when this processor lacks features that @words and @xfeatures have. */
int cpu_check(const uint32_t words[CPU_WORDS], uint64_t xfeatures, struct err *e);

/* Model name as /proc/cpuinfo has it, the caller's to free. */
char *cpu_model(void);

#endif
