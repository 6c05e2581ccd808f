#!/bin/bash
# Packages: qemu-system-x86. Needs: qemu-system-x86_64 as objcopy
# A machine of its own that starts from a disk, computes, says what came of it at a port, and
# turns itself off.
cat >boot.s <<'END'
	.code16
	.globl _start
_start:	cli
	movl $1, %eax
	movl $60000000, %ecx
1:	imull $69069, %eax, %eax
	incl %eax
	decl %ecx
	jnz 1b
	movw $8, %cx
2:	roll $4, %eax
	movl %eax, %ebx
	andb $15, %al
	addb $'a', %al
	outb %al, $0xe9
	movl %ebx, %eax
	loop 2b
	movb $'\n', %al
	outb %al, $0xe9
	movb $1, %al
	movw $0x501, %dx
	outb %al, %dx
3:	hlt
	jmp 3b
	.org 510
	.word 0xaa55
END
as --32 -o boot.o boot.s && objcopy -O binary boot.o boot.img && truncate -s 1M boot.img || exit 1
echo ready
qemu-system-x86_64 -accel tcg -m 64 -nodefaults -no-user-config -display none \
	-drive file=boot.img,format=raw,if=ide -debugcon file:said \
	-device isa-debug-exit,iobase=0x501,iosize=1
echo "status $?"
cat said
