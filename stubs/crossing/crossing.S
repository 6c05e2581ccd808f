/*
 * The crossing: a call from the upper half into the lower one and back, on one stack.
 *
 * The caller's return address moves to the thread's side stack, and the call instruction here
 * puts ours in its place: so arguments on the stack stay where the callee looks for them,
 * whatever their number, and returns pair with calls as the processor expects. FS base is
 * switched by instruction, without the kernel.
 *
 * A signal may come between any two instructions, and its handler may cross too, or leave by
 * longjmp. So an entry is reserved before it is filled and given back after it is emptied; and
 * on return the entry is recognised by its stack pointer, past any that were left behind. An
 * entry that is reserved but not filled has the stack pointer of an earlier call, by which a
 * handler would take it for one that was left behind: signals_entry puts the right one there.
 *
 * A thread may also be stopped for a checkpoint between any two instructions, and resume over
 * another lower half: what is the lower half's is fetched after the entry is complete, and gone
 * before the entry is given back. An entry that is not complete yet, or whose call has returned
 * to the upper FS base, may count or not: both is right (supervisor/split/lower_stop.c).
 */
#include <sys/syscall.h>

#include "shared/address_windows.h"
#include "stubs/crossing/save.inc"
#include "stubs/crossing/thread.h"
#include "stubs/crossing/unwind.inc"

	.hidden crossing_first, crossing_nested, crossing_open_library, crossing_exchange
	.hidden crossing_upper_slot_offset, crossing_call_upper
	.hidden crossing_callback_functions, crossing_function_targets, output_before_call, output_print_kept

	/* Where an entry is reserved and not complete, for each use of MAKE_ENTRY: from the popq on to the
	 * instruction that completes it. */
	.section .rodata
	.balign 4
reserved:
	.text

/* An entry of the thread's side stack, at rax: the caller's return address goes there. */
.macro MAKE_ENTRY
	addq $ENTRY_SIZE, THREAD_TOP(%r10)
.Lreserved\@:
	popq (%rax)
	UNWIND_POPPED
	mov %rbx, ENTRY_RBX(%rax)
.Lcompleted\@:
	mov %rsp, ENTRY_RSP(%rax)
	mov %r10, %rbx
	.pushsection .rodata
	.long .Lreserved\@ - reserved, .Lcompleted\@ - reserved
	.popsection
	UNWIND_ENTRY
.endm

/* The way in. Threads that come for the first time leave for `first`, threads that are inside
 * already for `nested`; both come back to `enter`. */
.macro COME_IN first, nested, enter
	mov crossing_current@gottpoff(%rip), %r10
	mov %fs:(%r10), %r10
	test %r10, %r10
	jz \first
	mov THREAD_TOP(%r10), %rax
	cmp THREAD_BASE(%r10), %rax
	jne \nested
\enter:
	MAKE_ENTRY
.endm

	.text
	.balign 64
	.globl crossing
	.protected crossing
	.type crossing, @function
crossing:
	.cfi_startproc
	COME_IN first, nested, enter
	mov THREAD_LOWER_FS(%r10), %rax
	wrfsbase %rax
	call *(%r11)
	/* Code that is called so may have put itself in between (stubs/cuda/export_entry.S). */
	.globl crossing_returned
	.protected crossing_returned
	.type crossing_returned, @function
crossing_returned:
	mov THREAD_UPPER_FS(%rbx), %rcx
	wrfsbase %rcx
leave:
	mov %rbx, %r11
	mov THREAD_TOP(%r11), %rcx
1:	sub $ENTRY_SIZE, %rcx
	cmp %rsp, ENTRY_RSP(%rcx)
	jne 1b
	pushq (%rcx)
	UNWIND_PUSHED
	mov ENTRY_RBX(%rcx), %rbx
	.cfi_restore %rbx
	mov %rcx, THREAD_TOP(%r11)
	ret
	.cfi_endproc

	/* A body of the upper half, at r11: an entry as for a call of the lower half, so that the
	 * thread is let run until the body returns before it is stopped for a checkpoint. */
	.globl crossing_guard
	.protected crossing_guard
	.type crossing_guard, @function
crossing_guard:
	.cfi_startproc
	COME_IN guard_first, guard_nested, guard_enter
	call *%r11
	jmp leave
	.cfi_endproc

	/* Lower code calls the upper function in r11. */
	.globl crossing_upcall
	.hidden crossing_upcall
	.type crossing_upcall, @function
crossing_upcall:
	.cfi_startproc
	/* Upper code that was handed the pointer (what wraps a callback) calls as it stands. The
	 * first word of thread-local storage is its own address. */
	mov %fs:0, %r10
	shr $LOWER_WINDOW_SHIFT, %r10
	cmp $LOWER_WINDOW_TOP, %r10
	jne to_upper
	mov crossing_upper_slot_offset(%rip), %r10
	mov %fs:(%r10), %r10
	test %r10, %r10
	jz on_lower_thread
	mov THREAD_TOP(%r10), %rax
	cmp THREAD_LIMIT(%r10), %rax
	jae overflow
	MAKE_ENTRY
	mov THREAD_UPPER_FS(%r10), %rax
	wrfsbase %rax
	call *%r11
	mov THREAD_LOWER_FS(%rbx), %rcx
	wrfsbase %rcx
	jmp leave
	.cfi_endproc

	.cfi_startproc
overflow:
	ud2
to_upper:	jmp *%r11
	.cfi_endproc

	/* Where a return address is led to stop a thread on its way out of the lower half: who
	 * traces it sees the system call. When that has died meanwhile, the thread runs on to
	 * where it was to return to. Only rax, rdx and xmm0 hold anything here. (Until r9 leads to
	 * the record nothing tells what the caller was. The nop is for unwinders, which look up the
	 * instruction before a return address.) */
	.globl crossing_trap, crossing_trapped
	.hidden crossing_trap, crossing_trapped
	.cfi_startproc
	.cfi_def_cfa_offset 0
	.cfi_undefined 16
	nop
crossing_trap:
	mov crossing_current@gottpoff(%rip), %r9
	mov %fs:(%r9), %r9
	.cfi_escape 0x10, 16, 2, 0x79, THREAD_ORIGINAL	/* breg9 THREAD_ORIGINAL */
	mov %rax, %r10
	mov $SYS_gettid, %eax
	syscall
crossing_trapped:
	mov %r10, %rax
	jmp *THREAD_ORIGINAL(%r9)
	.cfi_endproc

	/* The thread is the lower half's own: its helper in the upper half makes the call. */
on_lower_thread:
	.cfi_startproc
	PUSH_ARGUMENTS
	mov %rsp, %rsi
	mov %r11, %rdi
	sub $8, %rsp
	.cfi_adjust_cfa_offset 8
	call *crossing_call_upper(%rip)
	add $56, %rsp
	.cfi_adjust_cfa_offset -56
	ret
	.cfi_endproc

	/* The side stack is not empty: another call is in the lower half (a guarded body, a
	 * signal handler or a callback crosses), or entries were left behind, or this is a child
	 * of fork. */
.macro IS_NESTED slow, enter
	test %rax, %rax
	jz \slow
	cmp THREAD_LIMIT(%r10), %rax
	jae \slow
	/* On an alternate signal stack, or no longer: addresses alone do not tell. */
	cmpq $0, THREAD_SIGNAL_STACK(%r10)
	jne \slow
	/* The newest entry's frame lies above ours: it has not been left behind. */
	cmp %rsp, ENTRY_RSP-ENTRY_SIZE(%rax)
	ja \enter
.endm

nested:
	.cfi_startproc
	IS_NESTED nested_slow, enter
nested_slow:
	.cfi_remember_state
	SAVE_ARGUMENTS
	mov %r10, %rdi
	lea 80(%rbp), %rsi
	mov 48(%rbp), %rdx
	call crossing_nested
	jmp slow_done

	.cfi_restore_state
first:
	SAVE_ARGUMENTS
	mov 48(%rbp), %rdi
	call crossing_first

	/* C has returned the thread, and the result of the call when there is no thread. */
slow_done:
	mov %rax, 56(%rbp)
	test %rax, %rax
	jnz 1f
	mov %rdx, 48(%rbp)
1:	RESTORE_ARGUMENTS
	test %r10, %r10
	jz 2f
	mov THREAD_TOP(%r10), %rax
	jmp enter
2:	mov %r11, %rax
	ret
	.cfi_endproc
	.size crossing, . - crossing

guard_nested:
	.cfi_startproc
	IS_NESTED guard_nested_slow, guard_enter
guard_nested_slow:
	.cfi_remember_state
	SAVE_ARGUMENTS
	mov %r10, %rdi
	lea 80(%rbp), %rsi
	xor %edx, %edx
	call crossing_nested
	jmp guard_slow_done

	.cfi_restore_state
guard_first:
	SAVE_ARGUMENTS
	xor %edi, %edi
	call crossing_first

	/* Without a lower half there is nothing to be guarded. */
guard_slow_done:
	mov %rax, 56(%rbp)
	RESTORE_ARGUMENTS
	test %r10, %r10
	jz 1f
	mov THREAD_TOP(%r10), %rax
	jmp guard_enter
1:	jmp *%r11
	.cfi_endproc
	.size crossing_guard, . - crossing_guard

	.globl crossing_open
	.protected crossing_open
	.type crossing_open, @function
crossing_open:
	.cfi_startproc
	SAVE_ARGUMENTS
	mov %r10, %rdi
	call crossing_open_library
	mov %rax, 56(%rbp)
	RESTORE_ARGUMENTS
	test %r10, %r10
	jz crossing
	mov %r10, %rax
	ret
	.cfi_endproc
	.size crossing_open, . - crossing_open

	/* In place of crossing, when there is or may be something to be printed: before the call, and
	 * after it, if it has no arguments on the stack (stubs/gen/calls.c). */
	.globl crossing_print
	.hidden crossing_print
	.type crossing_print, @function
crossing_print:
	.cfi_startproc
	SAVE_ARGUMENTS
	mov %r11, %rdi
	call output_before_call
	mov %rax, 56(%rbp)
	RESTORE_ARGUMENTS
	test %r10, %r10
	jz crossing
	sub $8, %rsp
	.cfi_adjust_cfa_offset 8
	call crossing
	mov %rax, (%rsp)
	call output_print_kept
	pop %rax
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
	.size crossing_print, . - crossing_print

	.globl crossing_callback
	.protected crossing_callback
	.type crossing_callback, @function
crossing_callback:
	.cfi_startproc
	SAVE_ARGUMENTS
	mov %rbp, %rdi
	mov %eax, %esi
	call crossing_exchange
	RESTORE_ARGUMENTS
	jmp *(%r10)
	.cfi_endproc
	.size crossing_callback, . - crossing_callback

	/*
	 * Every handler of the program begins here: it completes an entry that was interrupted between its
	 * being reserved and filled. Of several signals that come at once, the kernel lets the last handler run
	 * first, with the others interrupted at their first instruction: up to `entered`, rdx leads to the
	 * context of what was interrupted, so that such a chain can be followed.
	 */
	.globl signals_entry
	.hidden signals_entry, signals_handler
	.type signals_entry, @function
signals_entry:
	.cfi_startproc
	mov %rdx, %rcx
1:	mov CONTEXT_RIP(%rcx), %rax
	lea signals_entry(%rip), %r8
	mov %rax, %r9
	sub %r8, %r9
	cmp $entered - signals_entry, %r9
	jae 2f
	mov CONTEXT_RDX(%rcx), %rcx
	jmp 1b
2:	lea reserved(%rip), %r8
	sub %r8, %rax
	lea reserved_end(%rip), %r10
3:	movslq (%r8), %r9
	cmp %r9, %rax
	jl 4f
	movslq 4(%r8), %r9
	cmp %r9, %rax
	jg 4f
	/* (It is the stack pointer of before or after the popq: no frame lies in between.) */
	mov CONTEXT_RSP(%rcx), %r11
	mov CONTEXT_RAX(%rcx), %rax
	mov %r11, ENTRY_RSP(%rax)
	jmp entered
4:	add $8, %r8
	cmp %r10, %r8
	jb 3b
entered:
	jmp signals_handler
	.cfi_endproc
	.size signals_entry, . - signals_entry

	.section .rodata
reserved_end:
	.text

	/* Functions for the lower half to call, each standing for one of the upper half. */
	.balign 16
	.globl crossing_callback_thunks
	.hidden crossing_callback_thunks
crossing_callback_thunks:
	.cfi_startproc
	.set i, 0
	.rept CALLBACKS
	.balign 16
	mov crossing_callback_functions+8*i(%rip), %r11
	jmp crossing_upcall
	.set i, i + 1
	.endr
	.cfi_endproc

	/* Functions for the upper half to call, each standing for one of the lower half. */
	.globl crossing_function_thunks
	.hidden crossing_function_thunks
crossing_function_thunks:
	.cfi_startproc
	.set i, 0
	.rept FUNCTIONS
	.balign 16
	lea crossing_function_targets+8*i(%rip), %r11
	jmp crossing
	.set i, i + 1
	.endr
	.cfi_endproc

	.section .note.GNU-stack, "", @progbits
