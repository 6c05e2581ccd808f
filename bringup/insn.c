/*
 * insn.c - a decoder for the lengths of a few instructions, and a copier that keeps what is
 * relative to the instruction pointer true.
 */
#include "bringup/insn.h"

/* What follows the opcode. */
enum { NONE = 0, MODRM = 1, IMM8 = 2, IMM32 = 4, KNOWN = 8 };

static unsigned one_byte_opcode(uint8_t op)
{
	if (op >= 0xb8 && op <= 0xbf) /* mov $imm32, %reg; with REX.W 8 bytes, see below */
		return KNOWN | IMM32;
	if ((op >= 0x50 && op <= 0x5f) || op == 0x90) /* push, pop, nop */
		return KNOWN;
	switch (op) {
	case 0x01:
	case 0x03:
	case 0x09:
	case 0x0b:
	case 0x21:
	case 0x23: /* add or and */
	case 0x29:
	case 0x2b:
	case 0x31:
	case 0x33:
	case 0x39:
	case 0x3b: /* sub xor cmp */
	case 0x63:
	case 0x85:
	case 0x89:
	case 0x8b:
	case 0x8d: /* movslq test mov mov lea */
		return KNOWN | MODRM;
	case 0x83: /* add, or, ... $imm8 */
		return KNOWN | MODRM | IMM8;
	case 0x81:
	case 0xc7: /* add, or, ... $imm32; mov $imm32 */
		return KNOWN | MODRM | IMM32;
	}
	return NONE;
}

static unsigned two_byte_opcode(uint8_t op)
{
	switch (op) {
	case 0x10:
	case 0x11:
	case 0x28:
	case 0x29: /* movups movaps */
	case 0x1f: /* nop */
	case 0x6f:
	case 0x7f: /* movdqa movdqu */
	case 0xb6:
	case 0xb7:
	case 0xbe:
	case 0xbf: /* movz movs */
		return KNOWN | MODRM;
	}
	return NONE;
}

/* Bytes of ModRM, SIB and displacement; *relative is the place of a displacement from the next
 * instruction, or 0. */
static unsigned modrm_length(const uint8_t *modrm, unsigned *relative)
{
	unsigned mod = *modrm >> 6, rm = *modrm & 7, n = 1;

	*relative = 0;
	if (mod == 3)
		return n;
	if (rm == 4) {
		n++;
		if (mod == 0 && (modrm[1] & 7) == 5)
			n += 4;
	} else if (mod == 0 && rm == 5) {
		*relative = n;
		n += 4;
	}
	return n + (mod == 1 ? 1 : mod == 2 ? 4 : 0);
}

/* @code may be read up to INSN_MAX bytes. */
static unsigned insn_parse(const uint8_t *code, unsigned *relative)
{
	unsigned n = 0, what, at;
	uint8_t rex = 0, op;

	*relative = 0;
	if (code[n] == 0x66 || code[n] == 0xf3)
		n++;
	if ((code[n] & 0xf0) == 0x40)
		rex = code[n++];
	op = code[n++];
	what = op == 0x0f ? two_byte_opcode(code[n++]) : one_byte_opcode(op);
	if (!what)
		return 0;
	if (what & MODRM) {
		n += modrm_length(code + n, &at);
		if (at)
			*relative = n - 4;
	}
	if (what & IMM8)
		n += 1;
	if (what & IMM32)
		n += (rex & 8) && op >= 0xb8 && op <= 0xbf ? 8 : 4;
	return n;
}

unsigned insn_length(const uint8_t *code, unsigned room)
{
	uint8_t copy[INSN_MAX + 1] = {0};
	unsigned relative, n;

	for (unsigned i = 0; i < INSN_MAX && i < room; i++)
		copy[i] = code[i];
	n = insn_parse(copy, &relative);
	return n <= room ? n : 0;
}

static int32_t load32(const uint8_t *p)
{
	return (int32_t)(p[0] | p[1] << 8 | p[2] << 16 | (uint32_t)p[3] << 24);
}

static void store32(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = v >> 8 * i;
}

unsigned insn_copy(uint8_t *to, const uint8_t *from, unsigned length)
{
	uint8_t copy[INSN_MAX + 1] = {0};
	unsigned relative;
	int64_t moved;

	for (unsigned i = 0; i < length; i++)
		copy[i] = to[i] = from[i];
	insn_parse(copy, &relative);
	if (!relative)
		return length;
	moved = load32(copy + relative) + (from - to);
	if (moved != (int32_t)moved)
		return 0;
	store32(to + relative, moved);
	return length;
}
