/* The parts that a lower half is built with, each by itself: the allocator of the window, the
 * decoder of sites, and the choice of a function's version. Prints TAP. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "bringup/insn.h"
#include "bringup/site.h"
#include "bringup/space.h"
#include "shared/address_windows.h"
#include "stubs/function_versions.h"

static int tests, failures;

static void ok(int condition, const char *name)
{
	printf("%sok %d - %s\n", condition ? "" : "not ", ++tests, name);
	failures += !condition;
}

#define MIB (1ul << 20)

static void test_space(void)
{
	uint64_t a = space_take(SPACE_DRIVER, 4096), b = space_take(SPACE_DRIVER, 8192), c, d;

	ok(a == LOWER_PART_DRIVER && b == a + 4096, "addresses are given out lowest first");
	c = space_take(SPACE_DRIVER, 3 * MIB);
	ok(c % (2 * MIB) == 0 && c > b, "large ranges are aligned for huge pages");
	space_release(a, 4096);
	ok(space_take(SPACE_DRIVER, 8192) != a, "a hole that is too small is left alone");
	ok(space_take(SPACE_DRIVER, 4096) == a, "a hole that fits is filled");
	space_release(c + MIB, MIB);
	ok(space_take(SPACE_DRIVER, MIB) != 0, "the middle of a range can be released");
	space_mark(LOWER_PART_STACKS, 64 * MIB);
	d = space_take(SPACE_STACKS, 4096);
	ok(d == LOWER_PART_STACKS + 64 * MIB, "what is marked is not given out");
	ok(space_take(SPACE_LDSO, LOWER_WINDOW_SIZE) == 0, "what does not fit is refused");
	space_mark(0x7f0000000000, 4096);
	space_release(LOWER_PART_LDSO - 4096, 8192);
	ok(space_take(SPACE_LDSO, 4096) == LOWER_PART_LDSO,
		"what lies outside changes nothing");
}

/* Of a lea 0x..(%rip),%rsi at @code, but for its length. */
static uintptr_t target(const uint8_t *code)
{
	int32_t distance;

	memcpy(&distance, code + 3, 4);
	return (uintptr_t)code + distance;
}

static void test_insn(void)
{
	static const struct {
		uint8_t code[8];
		unsigned length;
	} known[] = {
		{{0x48, 0x89, 0xfe}, 3},             /* mov %rdi,%rsi */
		{{0x41, 0xba, 8, 0, 0, 0}, 6},       /* mov $8,%r10d */
		{{0x48, 0x8d, 0x35, 1, 2, 3, 4}, 7}, /* lea 0x..(%rip),%rsi */
		{{0x48, 0x8d, 0x64, 0x24, 0x80}, 5}, /* lea -128(%rsp),%rsp */
		{{0x48, 0xc7, 0x04, 0x24, 0x20}, 8}, /* movq $32,(%rsp) */
		{{0x0f, 0x29, 0x44, 0x24, 0x20}, 5}, /* movaps %xmm0,.. */
		{{0x41, 0x83, 0xca, 0x40}, 4},       /* or $0x40,%r10d */
		{{0xeb, 0x10}, 0},                   /* jmp */
		{{0xe8, 1, 2, 3, 4}, 0},             /* call */
		{{0xc3}, 0},                         /* ret */
	};
	static uint8_t to[8];
	uint8_t far[8];
	int good = 1;

	for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		good &= insn_length(known[i].code, 8) == known[i].length;
	ok(good, "instructions have their lengths, and what leaves is not known");
	ok(!insn_length(known[2].code, 6), "an instruction that is cut off is not known");
	ok(insn_copy(to, known[2].code, 7) == 7 && target(to) == target(known[2].code),
		"a copy points to where the original did");
	ok(!insn_copy(far, known[2].code, 7), "or is refused, when that is out of reach");
}

static int wants_mmap(int nr)
{
	return nr == 9;
}

static void test_site(void)
{
	static const uint8_t text[] = {0x90, 0x90, 0x41, 0xb8, 9, 0, 0, 0, 0x0f, 0x05, /* r8d */
		0xb8, 9, 0, 0, 0, 0xeb, 0, 0x0f, 0x05, /* a jump in between */
		0xb8, 9, 0, 0, 0, 0x49, 0x89, 0xca, 0x0f, 0x05, 0xb8, 11, 0, 0, 0, 0x0f, 0x05};
	struct site site;

	ok(!site_find(text, text + sizeof(text), wants_mmap, &site) &&
			site.start == text + 19 && site.displaced == 8 && site.nr == 9,
		"a site is found, and what only looks like one is not");
	ok(site_find(site_end(&site), text + sizeof(text), wants_mmap, &site) < 0,
		"and there is one only");
}

static void old(void)
{
}

static void new (void)
{
}

static void own(void)
{
}

static void test_versions(void)
{
	static const struct function_version versions[] = {{"cuA", 12000, 0, new},
		{"cuA", 2000, 0, old}, {"cuA", 7000, 1, own}, {"cuB", 11000, 0, old}};

	ok(function_version_find(versions, 4, "cuA", 13000, 0) == new,
		"the newest version is the answer");
	ok(function_version_find(versions, 4, "cuA", 11999, 0) == old,
		"unless the caller is older");
	ok(function_version_find(versions, 4, "cuA", 13000, 1) == own,
		"per-thread callers get their own");
	ok(function_version_find(versions, 4, "cuA", 6000, 1) == old,
		"or the common one, as it was then");
	ok(!function_version_find(versions, 4, "cuB", 10000, 0) &&
			!function_version_find(versions, 4, "cuC", 1, 0),
		"and what does not exist is not found");
}

int main(void)
{
	test_space();
	test_insn();
	test_site();
	test_versions();
	printf("1..%d\n", tests);
	return failures != 0;
}
