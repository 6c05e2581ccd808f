/*
 * long lower_clone(long flags, void *stack, uintptr_t entry)
 *
 * A thread that starts as a program does: at @entry, rsp at the words the kernel would have put
 * there, FS base 0, no function to register with atexit in rdx. It never returns; the caller
 * gets its id or -errno.
 */
	.text
	.globl lower_clone
	.hidden lower_clone
	.type lower_clone, @function
lower_clone:
	mov %rdx, %r9
	xor %edx, %edx
	xor %r10d, %r10d
	xor %r8d, %r8d
	mov $56, %eax
	syscall
	test %rax, %rax
	jz 1f
	ret
1:	xor %ecx, %ecx
	wrfsbase %rcx
	xor %ebp, %ebp
	xor %edx, %edx
	jmp *%r9
	.size lower_clone, . - lower_clone

	.section .note.GNU-stack, "", @progbits
