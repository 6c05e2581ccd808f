/* Code that nobody calls, before and behind t/sim/large's own. */
	.text
	.skip 0x300000, 0xcc

	.section .note.GNU-stack, "", @progbits
