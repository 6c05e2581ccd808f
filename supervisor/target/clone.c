#include "supervisor/target/clone.h"

#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/err.h"

#define STACK_SIZE (1ul << 20)

static struct clone_args make_args(uint64_t flags, const pid_t *pid, int exit_signal)
{
	return (struct clone_args){
		.flags = flags,
		.exit_signal = exit_signal,
		.set_tid = *pid ? (uintptr_t)pid : 0,
		.set_tid_size = *pid ? 1 : 0,
	};
}

pid_t clone_process(uint64_t flags, pid_t pid)
{
	struct clone_args args = make_args(flags, &pid, flags & CLONE_PARENT ? 0 : SIGCHLD);

	return syscall(SYS_clone3, &args, sizeof(args));
}

/* The child comes back from the system call on an empty stack: nothing of a C function can be
 * on it. All registers but those of the call are the same. */
static long clone_onto_stack(struct clone_args *args, void (*run)(void *arg), void *arg)
{
	long result = SYS_clone3;

	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "mov %[arg], %%rdi\n\t"
			 "call *%[run]\n\t"
			 "ud2\n"
			 "1:"
			 : "+a"(result)
			 : "D"(args), "S"(sizeof(*args)), [run] "r"(run), [arg] "r"(arg)
			 : "rcx", "r11", "memory");
	return result;
}

pid_t clone_and_run(
	uint64_t flags, pid_t pid, int exit_signal, void (*run)(void *arg), void *arg)
{
	struct clone_args args = make_args(flags, &pid, flags & CLONE_PARENT ? 0 : exit_signal);
	void *stack;
	long made;

	if (!(flags & CLONE_VM)) {
		made = syscall(SYS_clone3, &args, sizeof(args));
		if (!made) {
			run(arg);
			BUG();
		}
		return made;
	}
	/* Gone with all the memory, when that becomes the program's. */
	stack = mmap(
		NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (stack == MAP_FAILED)
		return -1;
	args.stack = (uintptr_t)stack;
	args.stack_size = STACK_SIZE;
	made = clone_onto_stack(&args, run, arg);
	if (made < 0)
		errno = -made;
	return made < 0 ? -1 : made;
}
