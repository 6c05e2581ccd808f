/*
 * The loader's first bytes, at offsets that shared/batch.h names.
 */
#include "shared/batch.h"

	.section .entry, "ax"
	.globl	loader_start
loader_start:
	and	$-16, %rsp
	call	batch_run

	.org	LOADER_ENTRY_SYSCALL
	syscall
	int3

	.org	LOADER_ENTRY_TILES
	ldtilecfg tile_shapes(%rip)
	tilezero %tmm0
	tilerelease
	syscall
	int3

	/* Palette 1, one tile of one row of 64 bytes. */
	.balign	64
tile_shapes:
	.byte	1
	.org	tile_shapes + 16
	.word	64
	.org	tile_shapes + 48
	.byte	1
	.org	tile_shapes + 64

	.text

/* long batch_syscall(const unsigned long args[7]): number, then arguments. */
	.globl	batch_syscall
	.type	batch_syscall, @function
batch_syscall:
	mov	%rdi, %rax
	mov	8(%rax), %rdi
	mov	16(%rax), %rsi
	mov	24(%rax), %rdx
	mov	32(%rax), %r10
	mov	40(%rax), %r8
	mov	48(%rax), %r9
	mov	(%rax), %rax
	syscall
	ret

/*
 * long batch_clone(struct clone_args *args, size_t size): the new thread comes back here on
 * its own stack, at whose top the supervisor has put the address of its batch.
 */
	.globl	batch_clone
	.type	batch_clone, @function
batch_clone:
	mov	$435, %eax		/* clone3 */
	syscall
	test	%rax, %rax
	jz	1f
	ret
1:	pop	%rdi
	xor	%ebp, %ebp
	and	$-16, %rsp
	call	batch_run
	int3

	.section .note.GNU-stack, "", @progbits
