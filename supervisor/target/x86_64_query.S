/*
 * x86_64_query.S - several system calls without a stop for each (remote_query.h). Copied behind
 * the cave of a target; position-independent.
 *
 * Behind the last call it waits to be stopped, which is how the tracing thread takes over again.
 * When that is no more (kill(2) says ESRCH: threads leave no zombies), we go home. So no
 * instruction may change the flags, nor any register that the way home does not put back: rax,
 * rcx, rdx, rsi, rdi, r8 to r11. And no call may leave a restart block (poll, nanosleep, futex
 * with a time-out): the call which the thread was stopped in still needs its own.
 */
#include <asm/unistd_64.h>

#include "supervisor/target/vdso_code.h"

#define ESRCH   3
#define WAIT_NS 10000000

	.section .rodata
	.global x86_64_query_code, x86_64_query_run, x86_64_query_unmap, x86_64_query_wait, \
		x86_64_query_slots
	.hidden x86_64_query_code, x86_64_query_run, x86_64_query_unmap, x86_64_query_wait, \
		x86_64_query_slots
	.balign 8
x86_64_query_code:
	mov $__NR_mmap, %eax
	mov page(%rip), %rdi
	mov $4096, %esi
	mov $3, %edx /* PROT_READ | PROT_WRITE */
	mov $0x100022, %r10d /* MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE */
	mov $-1, %r8
	mov $0, %r9d
	syscall
	mov %rax, %r9 /* stays there: x86_64_query_mapped() */
	mov minus_page(%rip), %rcx
	lea (%rax, %rcx), %rcx
	jrcxz x86_64_query_run
	jmp x86_64_query_wait

	/* With a page that is there. */
x86_64_query_run:
	mov $0, %r8d
	mov table(%rip), %r9
1:	mov (%r9), %rcx
	jrcxz 2f
	mov %rcx, %rax
	mov 8(%r9), %rdi
	mov 16(%r9), %rsi
	mov 24(%r9), %rdx
	mov 32(%r9), %r10
	syscall
	mov 40(%r9), %rcx
	mov %rax, (%rcx)
	lea QUERY_ROW(%r9), %r9
	jmp 1b
2:	mov page(%rip), %rcx
	mov done(%rip), %rax
	mov %rax, QUERY_DONE(%rcx)
	jmp x86_64_query_wait

x86_64_query_unmap:
	mov $__NR_munmap, %eax
	mov page(%rip), %rdi
	mov $4096, %esi
	syscall

	/* Also when no page is available. */
x86_64_query_wait:
	mov $__NR_ppoll, %eax
	mov $0, %edi
	mov $0, %esi
	lea 2f(%rip), %rdx
	mov $0, %r10d
	syscall
	mov $__NR_kill, %eax
	mov tracer(%rip), %edi
	mov $0, %esi
	syscall
	lea ESRCH(%rax), %rcx
	jrcxz 1f
	jmp x86_64_query_wait
1:	jmp x86_64_query_code - CAVE_QUERY + CAVE_HOME
	.balign 8
2:	.quad 0, WAIT_NS

	.balign 8
x86_64_query_slots:
page:
	.quad 0
minus_page:
	.quad 0
tracer:
	.quad 0
done:
	.quad 0
table:
	.quad 0

	.section .note.GNU-stack, "", @progbits
