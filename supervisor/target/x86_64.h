/*
 * x86_64.h - the processor's side of acting in a stopped thread: system-call registers, the
 * code that runs there, restart codes. Everything else is free of register names.
 */
#ifndef SUPERVISOR_TARGET_X86_64_H
#define SUPERVISOR_TARGET_X86_64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

#include "supervisor/target/vdso_code.h"

/* What a system call returns inside the kernel when it is to be restarted
 * (include/linux/errno.h); seen in rax of a thread stopped in one. */
#define ERESTARTSYS           512
#define ERESTARTNOINTR        513
#define ERESTARTNOHAND        514
#define ERESTART_RESTARTBLOCK 516

/*
 * The cave: code written into the unused end of the target's vdso for the time of an
 * injection. It begins with a system call; behind it stands the way home, which runs only
 * when the supervisor has died in the middle: signal mask back, scratch memory unmapped,
 * registers back, jump to where the thread was.
 */
struct cave_home {
	struct user_regs_struct regs; /* what the thread goes back to */
	uint64_t sigmask;
	uint64_t scratch, scratch_size; /* 0: none */
};

void x86_64_cave(uint8_t code[CAVE_SIZE], const struct cave_home *home);

/* A system call by its number, whatever a register says of that, and a trap behind it. */
#define TRAPPED_CALL_SIZE 8
void x86_64_trapped_call(uint8_t code[TRAPPED_CALL_SIZE], long nr);

/* Offset of CAVE_SIZE unused bytes in a vdso of @size bytes, or 0 when there are none. *room:
 * how many there are from there on. */
size_t x86_64_find_cave(const uint8_t *vdso, size_t size, size_t *room);

/* Set @regs as in a thread that is about to execute the system call instruction at @rip. */
void x86_64_set_syscall(
	struct user_regs_struct *regs, uint64_t rip, long nr, const uint64_t args[6]);
int64_t x86_64_result(const struct user_regs_struct *regs);
void x86_64_set_result(struct user_regs_struct *regs, int64_t result);
/* What mmap(2) has returned to x86_64_query.S, when no page is available. */
int64_t x86_64_query_mapped(const struct user_regs_struct *regs);
/* A call that has returned: the kernel is not to look at it for a restart. */
void x86_64_end_syscall(struct user_regs_struct *regs, int64_t result);
void x86_64_set_stack(struct user_regs_struct *regs, uint64_t top);
/* Whether the thread stopped inside a system call that has not returned to it. */
bool x86_64_in_syscall(const struct user_regs_struct *regs);
long x86_64_syscall_number(const struct user_regs_struct *regs);
void x86_64_set_syscall_number(struct user_regs_struct *regs, long nr);
uint64_t x86_64_syscall_arg(const struct user_regs_struct *regs, int i);
void x86_64_set_syscall_arg(struct user_regs_struct *regs, int i, uint64_t value);
uint64_t x86_64_stack(const struct user_regs_struct *regs);
uint64_t x86_64_pc(const struct user_regs_struct *regs);
void x86_64_set_pc(struct user_regs_struct *regs, uint64_t pc);

#endif
