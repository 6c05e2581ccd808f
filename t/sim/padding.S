/* Code that nobody calls, before and behind that of t/sim/large. */
	.text
	.skip 0x300000, 0xcc

	.section .note.GNU-stack, "", @progbits
