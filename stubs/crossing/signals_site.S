/* Way from the trampoline in the program's libc into signals.c. */
#include "bringup/site_entry.inc"

	.text
	.hidden signals_hook
SITE_ENTRY signals_site, signals_hook

	.section .note.GNU-stack, "", @progbits
