/*
 * site.c - finds the system calls in a text, checks that a jump can take their place, and
 * writes trampolines.
 */
#include "bringup/site.h"

#include "bringup/insn.h"

#define DISPLACED_MAX 32

static int is_syscall(const uint8_t *p)
{
	return p[0] == 0x0f && p[1] == 0x05;
}

/* Moves before `syscall` with a number in rax already: mov 8(%rsp),%r9 in syscall(3); of glibc
 * 2.41 and later, mov %r11,8(%rsp) in __syscall_cancel_arch and mov 16(%rsp),%rax or
 * mov 32(%rsp),%rax in __internal_syscall_cancel. The offset is the compiler's. */
static int is_variable(const uint8_t *p)
{
	static const uint8_t moves[][4] = {
		{0x4c, 0x8b, 0x4c, 0x24},
		{0x4c, 0x89, 0x5c, 0x24},
		{0x48, 0x8b, 0x44, 0x24},
	};

	for (unsigned i = 0; i < sizeof(moves) / sizeof(moves[0]); i++) {
		unsigned j = 0;

		while (j < 4 && p[j] == moves[i][j])
			j++;
		if (j == 4)
			return 1;
	}
	return 0;
}

/* mov $NR, %eax, and not the tail of a longer instruction such as mov $NR, %r8d. */
static int is_constant(const uint8_t *from, const uint8_t *p)
{
	if (p[0] != 0xb8 || p[3] || p[4])
		return 0;
	return p == from || (p[-1] & 0xf0) != 0x40;
}

/* Walk from the first instruction to the syscall; 0 when something unknown is in between. */
static unsigned distance_to_syscall(const uint8_t *p, const uint8_t *end)
{
	unsigned n = 5;

	while (n <= DISPLACED_MAX && p + n + 2 <= end) {
		unsigned length;

		if (is_syscall(p + n))
			return n;
		length = insn_length(p + n, end - p - n);
		if (!length)
			return 0;
		n += length;
	}
	return 0;
}

/* The next @byte at or after @p, eight at a time: text segments are megabytes. Or @end. */
static const uint8_t *next_byte(const uint8_t *p, const uint8_t *end, uint8_t byte)
{
	const uint64_t ones = 0x0101010101010101, highs = 0x8080808080808080;
	uint64_t word;

	for (; p + 8 <= end; p += 8) {
		__builtin_memcpy(&word, p, 8);
		word ^= ones * byte;
		word = (word - ones) & ~word & highs; /* marks the first zero byte */
		if (word)
			return p + __builtin_ctzl(word) / 8;
	}
	while (p < end && *p != byte)
		p++;
	return p;
}

const uint8_t *site_bytes(
	const uint8_t *from, const uint8_t *end, const uint8_t *bytes, unsigned count)
{
	for (const uint8_t *p = from; (p = next_byte(p, end, bytes[0])) + count <= end; p++) {
		unsigned n = 1;

		while (n < count && p[n] == bytes[n])
			n++;
		if (n == count)
			return p;
	}
	return NULL;
}

/* The next syscall instruction at or after @p. */
static const uint8_t *next_syscall(const uint8_t *p, const uint8_t *end)
{
	static const uint8_t code[] = {0x0f, 0x05};

	return site_bytes(p, end, code, sizeof(code));
}

/* Is @start the beginning of a site that ends in the syscall at @end? */
static int is_site(const uint8_t *from, const uint8_t *start, const uint8_t *end,
	int (*wanted)(int nr), struct site *site)
{
	site->start = (uint8_t *)start;
	site->displaced = end - start;
	if (end - start == 5 && is_variable(start) && wanted(SITE_VARIABLE)) {
		site->nr = SITE_VARIABLE;
		return 1;
	}
	site->nr = start[1] | start[2] << 8;
	return is_constant(from, start) && wanted(site->nr) &&
	       distance_to_syscall(start, end + 2) == site->displaced;
}

int site_find(const uint8_t *from, const uint8_t *end, int (*wanted)(int nr), struct site *site)
{
	const uint8_t *call = from + 5;

	while ((call = next_syscall(call, end))) {
		/* The nearest mov before it counts. */
		for (const uint8_t *p = call - 5; p >= from && p >= call - DISPLACED_MAX; p--)
			if (is_site(from, p, call, wanted, site))
				return 0;
		call += 2;
	}
	return -1;
}

const uint8_t *site_end(const struct site *site)
{
	return site->start + site->displaced + 2;
}

static uint8_t *put_bytes(uint8_t *to, const void *bytes, unsigned n)
{
	const uint8_t *from = bytes;

	while (n--)
		*to++ = *from++;
	return to;
}

static int is_in_reach(const uint8_t *from, const uint8_t *to)
{
	int64_t distance = to - from;

	return distance == (int32_t)distance;
}

void site_jump(const uint8_t *start, const uint8_t *trampoline, uint8_t jump[5])
{
	int32_t distance = trampoline - (start + 5);

	jump[0] = 0xe9;
	put_bytes(jump + 1, &distance, 4);
}

/*
 *	displaced instructions
 *	lea -128(%rsp), %rsp		leave the red zone alone
 *	movabs $entry, %r11		(r11 and rcx are the syscall's to destroy)
 *	call *%r11			result in rax and r11 1, or all as it was and r11 0
 *	lea 128(%rsp), %rsp
 *	test %r11d, %r11d
 *	jnz 1f
 *	syscall
 * 1:	jmp behind the syscall
 */
uint8_t *site_prepare(const struct site *site, site_entry *entry, struct site_room *room)
{
	static const uint8_t before[] = {0x48, 0x8d, 0x64, 0x24, 0x80, 0x49, 0xbb};
	static const uint8_t after[] = {0x41, 0xff, 0xd3, 0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0,
		0x45, 0x85, 0xdb, 0x75, 0x02, 0x0f, 0x05};
	const uint8_t *back = site->start + site->displaced + 2;
	uint8_t *trampoline = room->next, *p = trampoline;

	if (room->end - p < 96 + DISPLACED_MAX || !is_in_reach(site->start + 5, p) ||
		!is_in_reach(p + 96 + DISPLACED_MAX, back))
		return NULL;
	for (unsigned done = 0, n; done < site->displaced; done += n) {
		n = done ? insn_length(site->start + done, INSN_MAX) : 5;
		if (!insn_copy(p, site->start + done, n))
			return NULL;
		p += n;
	}
	p = put_bytes(p, before, sizeof(before));
	p = put_bytes(p, &entry, sizeof(entry));
	p = put_bytes(p, after, sizeof(after));
	site_jump(p, back, p);
	p += 5;
	room->next = (uint8_t *)(((uintptr_t)p + 15) & ~15ul);
	return trampoline;
}
