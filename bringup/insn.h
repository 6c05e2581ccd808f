/*
 * insn.h - the few x86-64 instructions that compilers put between `mov $NR, %eax` and
 * `syscall`.
 */
#ifndef BRINGUP_INSN_H
#define BRINGUP_INSN_H

#include <stdint.h>

#define INSN_MAX 15

/* Length of the instruction at @code when it is one of those known here, all within @room
 * bytes; else 0. Jumps and calls are not known: what is moved must not leave. */
unsigned insn_length(const uint8_t *code, unsigned room);

/* Copy the known instruction at @from (of insn_length @length) to @to, keeping what an
 * instruction-relative operand points to. 0 when that is out of reach. */
unsigned insn_copy(uint8_t *to, const uint8_t *from, unsigned length);

#endif
