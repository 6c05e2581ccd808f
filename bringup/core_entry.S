/* Ways from the trampolines into the hooks. */
#include "bringup/site_entry.inc"

	.text
SITE_ENTRY core_entry_ldso, hook_ldso
SITE_ENTRY core_entry_libc, hook_libc

	.section .note.GNU-stack, "", @progbits
