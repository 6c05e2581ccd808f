/* nameless.h - ways to functions of hidden tables (nameless.S). */
#ifndef STUBS_CUDA_NAMELESS_H
#define STUBS_CUDA_NAMELESS_H

#define NAMELESS      1024
#define NAMELESS_SIZE 16 /* bytes of one way */

#ifndef __ASSEMBLER__
#include "stubs/library.h"

extern STUB_HIDDEN char cuda_nameless[];
/* Where each leads to. */
extern STUB_HIDDEN void *cuda_nameless_targets[NAMELESS];
#endif

#endif
