/*
 * Large regions of ordinary memory, which a restart fills by copies where it may (supervisor/memory/fill_copier.h):
 * side by side with different rights, with pages of zeros and pages that have never been touched, not for children,
 * and, for comparison, a stack's kind and a small one. Mappings of which a page is a guard, or is protected for a while,
 * are one mapping as before, which mremap(2) can move. Told to, it says how many page faults it had before it looked.
 */
#include <errno.h>
#include <sys/resource.h>

#include "victim.h"

static const struct {
	size_t size;
	int prot, advice;
} regions[] = {
	{8 * MIB, PROT_READ | PROT_WRITE, 0},
	{4 * MIB, PROT_READ, 0},
	{2 * MIB, PROT_NONE, 0},
	{3 * MIB + 4 * KIB, PROT_READ | PROT_WRITE, MADV_DONTFORK},
	{2 * MIB, PROT_READ | PROT_WRITE, MADV_WIPEONFORK},
	{64 * KIB, PROT_READ, MADV_DONTFORK},
	{2 * MIB, PROT_READ | PROT_WRITE, MADV_NOHUGEPAGE},
};
#define REGIONS (sizeof(regions) / sizeof(regions[0]))
#define ROOM    (32 * MIB)

#define PAGE 4096ul

static char *window;
static char before[8192];

static bool is_hole(size_t page)
{
	return page % 64 == 63;
}

static bool is_zero(size_t page)
{
	return page % 64 == 62;
}

static char *place(size_t i)
{
	char *at = window;

	while (i--)
		at += regions[i].size;
	return at;
}

static void prepare(size_t i)
{
	char *at = place(i);

	MUST(mmap(at, regions[i].size, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
	if (regions[i].advice)
		MUST(!madvise(at, regions[i].size, regions[i].advice));
	for (size_t page = 0; page < regions[i].size / PAGE; page++)
		if (is_zero(page))
			memset(at + page * PAGE, 0, PAGE);
		else if (!is_hole(page))
			victim_fill(at + page * PAGE, PAGE, i << 16 | page);
	MUST(!mprotect(at, regions[i].size, regions[i].prot));
}

/* The lines of /proc/self/smaps that tell of mappings in the window, and of their flags. */
static void list_mappings(char *text, size_t size)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	unsigned long start, end;
	bool inside = false;
	size_t used = 0;
	char line[512];

	MUST(f);
	text[0] = 0;
	while (fgets(line, sizeof(line), f)) {
		bool flags = !strncmp(line, "VmFlags:", 8);

		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			inside = start >= (uintptr_t)window && end <= (uintptr_t)window + ROOM;
		else if (!flags)
			continue;
		MUST(used + strlen(line) < size);
		if (inside)
			used += sprintf(text + used, "%s", line);
	}
	fclose(f);
}

static void check(size_t i)
{
	static const char zeros[PAGE];
	char *at = place(i);

	CHECK(!mprotect(at, regions[i].size, PROT_READ | PROT_WRITE), "region %zu", i);
	for (size_t page = 0; page < regions[i].size / PAGE; page++)
		if (is_zero(page) || is_hole(page))
			CHECK(!memcmp(at + page * PAGE, zeros, PAGE), "region %zu, page %zu", i,
				page);
		else if (!SAME(at + page * PAGE, PAGE, i << 16 | page, "a region"))
			return;
	memset(at, 1, regions[i].size);
}

/* ---- mappings with a page that is another region of the image ---- */

#define WHOLE (3 * MIB)

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

enum page_kind {
	GUARDED,
	UNREADABLE,
	READABLE,
};

static struct {
	int prot; /* of the mapping */
	enum page_kind kind;
	size_t offset; /* of the page */
	char *at;
} divided[] = {
	{PROT_READ | PROT_WRITE, GUARDED, 3 * MIB / 2, NULL},
	{PROT_READ | PROT_WRITE, GUARDED, WHOLE - 64 * KIB, NULL},
	{PROT_READ, UNREADABLE, 3 * MIB / 2, NULL},
	{PROT_READ, GUARDED, 3 * MIB / 2, NULL},
	{PROT_READ | PROT_WRITE, UNREADABLE, 3 * MIB / 2, NULL},
	{PROT_READ | PROT_WRITE, UNREADABLE, WHOLE - 64 * KIB, NULL},
	{PROT_READ | PROT_WRITE, READABLE, 3 * MIB / 2, NULL},
};
#define DIVIDED (sizeof(divided) / sizeof(divided[0]))

/* Between pages that nobody may touch, and that are no part of it. */
static void prepare_divided(size_t i)
{
	char *at = mmap(NULL, WHOLE + 2 * PAGE, PROT_NONE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char *page = at + PAGE + divided[i].offset;

	MUST(at != MAP_FAILED);
	at += PAGE;
	MUST(mmap(at, WHOLE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		     -1, 0) == at);
	victim_fill(at, WHOLE, i);
	if (divided[i].kind == GUARDED && madvise(page, PAGE, MADV_GUARD_INSTALL))
		MUST(errno == EINVAL); /* this kernel has no guards */
	MUST(!mprotect(at, WHOLE, divided[i].prot));
	if (divided[i].kind == UNREADABLE)
		MUST(!mprotect(page, PAGE, PROT_NONE));
	if (divided[i].kind == READABLE)
		MUST(!mprotect(page, PAGE, PROT_READ));
	divided[i].at = at;
}

static void check_divided(size_t i)
{
	char *at = divided[i].at, *page = at + divided[i].offset, *moved;

	if (divided[i].kind != GUARDED)
		CHECK(!mprotect(page, PAGE, divided[i].prot), "mapping %zu", i);
	moved = mremap(at, WHOLE, 2 * WHOLE, MREMAP_MAYMOVE);
	CHECK(moved != MAP_FAILED, "mapping %zu is several: %s", i, strerror(errno));
	if (moved != MAP_FAILED)
		SAME(moved, divided[i].kind == GUARDED ? divided[i].offset : WHOLE, i,
			"a mapping");
}

void victim_hurt(void)
{
	place(0)[5 * MIB] ^= 1;
}

int main(int argc, char **argv)
{
	static char after[sizeof(before)];
	struct rusage usage;

	(void)argv;
	window = mmap(NULL, ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(window != MAP_FAILED);
	for (size_t i = 0; i < REGIONS; i++)
		prepare(i);
	for (size_t i = 0; i < DIVIDED; i++)
		prepare_divided(i);
	list_mappings(before, sizeof(before));
	victim_ready();
	victim_wait();
	getrusage(RUSAGE_SELF, &usage);
	if (argc > 1)
		victim_say("faults %ld", usage.ru_minflt);
	list_mappings(after, sizeof(after));
	CHECK(!strcmp(before, after), "mappings were\n%s and are\n%s", before, after);
	for (size_t i = 0; i < REGIONS; i++)
		check(i);
	for (size_t i = 0; i < DIVIDED; i++)
		check_divided(i);
	return victim_done();
}
