/*
 * A tree of processes that fork, and write to memory that they have in common since then, by chance: each has its
 * own contents, to the last byte, and with "pss" as last argument together they take hardly more memory than before.
 *
 *	tree_pages SEED [pss]
 */
#include "tree.h"

#define PROCESSES 12
#define PAGE      4096ul

/* Kinds of memory, each a region at first. */
enum kind {
	PLAIN,
	HEAP,
	HUGE,
	NOT_HUGE,
	NOT_FORKED, /* each time it is set after the last child */
	WIPED,
	LOCKED,
	READ_ONLY,
	HIDDEN,
	KINDS,
};

static const size_t sizes[KINDS] = {[PLAIN] = 16 * MIB,
	[HEAP] = 3 * MIB,
	[HUGE] = 8 * MIB,
	[NOT_HUGE] = 2 * MIB,
	[NOT_FORKED] = 2 * MIB,
	[WIPED] = 2 * MIB,
	[LOCKED] = 32 * KIB,
	[READ_ONLY] = 2 * MIB,
	[HIDDEN] = 1 * MIB};

static char *memory[KINDS];
static uint64_t sums[KINDS], chance;
static bool locked;

/* What all processes see. */
static struct {
	_Atomic int made;
	_Atomic bool renewed; /* by process 1, which has made its children */
	_Atomic pid_t pids[PROCESSES];
} * common;

void victim_hurt(void)
{
	memory[PLAIN][5 * PAGE + 77]++;
}

/* xorshift */
static uint64_t draw(uint64_t below)
{
	chance ^= chance << 13;
	chance ^= chance >> 7;
	chance ^= chance << 17;
	return (chance >> 11) % below;
}

static uint64_t sum_of(const char *at, size_t size)
{
	uint64_t sum = 0;

	for (const char *end = at + size; at < end; at += 8)
		sum = (sum ^ *(const uint64_t *)at) * 0x9e3779b97f4a7c15ull + (sum >> 29);
	return sum;
}

static void fill_page(char *page)
{
	for (size_t i = 0; i < PAGE; i += 8)
		*(uint64_t *)(page + i) = draw(UINT64_MAX);
}

/* Some pages written, some in part, some zeroed, some given back. */
static void change(enum kind k)
{
	size_t pages = sizes[k] / PAGE;

	for (size_t i = 0; i < 2 + pages / 100; i++) {
		char *page = memory[k] + draw(pages) * PAGE;

		switch (draw(8)) {
		case 0:
			memset(page, 0, PAGE);
			break;
		case 1:
			MUST(k == LOCKED || !madvise(page, PAGE, MADV_DONTNEED));
			break;
		case 2:
			fill_page(page);
			break;
		default:
			page[draw(PAGE)] ^= 1 + draw(255);
		}
	}
}

static void open_all(void)
{
	MUST(!mprotect(memory[READ_ONLY], sizes[READ_ONLY], PROT_READ | PROT_WRITE) &&
		!mprotect(memory[HIDDEN], sizes[HIDDEN], PROT_READ | PROT_WRITE));
}

static void close_all(void)
{
	MUST(!mprotect(memory[READ_ONLY], sizes[READ_ONLY], PROT_READ) &&
		!mprotect(memory[HIDDEN], sizes[HIDDEN], PROT_NONE));
}

/* What is set when it has made its children. */
static void settle(void)
{
	MUST(!madvise(memory[NOT_FORKED], sizes[NOT_FORKED], MADV_DONTFORK) &&
		!madvise(memory[WIPED], sizes[WIPED], MADV_WIPEONFORK));
	locked = !mlock(memory[LOCKED], sizes[LOCKED]);
	for (int k = 0; k < KINDS; k++)
		sums[k] = sum_of(memory[k], sizes[k]);
	close_all();
}

static void check_memory(void)
{
	open_all();
	for (int k = 0; k < KINDS; k++)
		CHECK(sum_of(memory[k], sizes[k]) == sums[k], "memory %d of process %d", k,
			getpid());
	/* What it writes now is its own. */
	for (int k = 0; k < KINDS; k++)
		for (size_t i = 0; i < sizes[k]; i += PAGE)
			memory[k][i] = getpid() + k;
	for (int k = 0; k < KINDS; k++)
		for (size_t i = 0; i < sizes[k]; i += PAGE)
			CHECK(memory[k][i] == (char)(getpid() + k), "page of memory %d", k);
}

static void live(int depth, int nth);

static void make_children(int depth, int least)
{
	int count = least + draw(3);

	for (int i = 0; i < count && depth < 4; i++) {
		int nth = atomic_fetch_add(&common->made, 1);
		pid_t pid;

		if (nth >= PROCESSES)
			break;
		pid = fork();
		MUST(pid >= 0);
		if (!pid) {
			atomic_store(&common->pids[nth], getpid());
			chance += nth * 0x9e3779b97f4a7c15ull;
			live(depth + 1, nth);
		}
		while (nth == 1 && !common->renewed)
			usleep(1000);
		for (int k = 0; k < KINDS; k++)
			if (!draw(3))
				change(k);
	}
}

/* One has memory that is new, and in common with its children only. */
static void __attribute__((noreturn)) live(int depth, int nth)
{
	for (size_t i = 0; nth == 1 && i < sizes[PLAIN]; i += PAGE)
		fill_page(memory[PLAIN] + i);
	for (int k = 0; k < KINDS; k++)
		if (draw(2))
			change(k);
	make_children(depth, nth == 1 ? 2 : 0);
	common->renewed |= nth == 1;
	tree_live(settle, check_memory);
}

static void make_memory(void)
{
	for (int k = 0; k < KINDS; k++) {
		if (k == HEAP)
			memory[k] = sbrk(sizes[k]);
		else
			memory[k] = mmap(NULL, sizes[k], PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		MUST(memory[k] != MAP_FAILED);
		if (k == HUGE || k == NOT_HUGE)
			/* Not every kernel has huge pages. */
			(void)madvise(memory[k], sizes[k],
				k == HUGE ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
		for (size_t i = 0; i < sizes[k]; i += PAGE)
			if (draw(10))
				fill_page(memory[k] + i);
	}
}

/* KiB of anonymous memory of all; what several have counts once. */
static long pss_of_all(void)
{
	long sum = 0, kib;
	char path[64], line[256];

	for (int i = 0; i < PROCESSES; i++) {
		FILE *f;

		if (!common->pids[i])
			continue;
		snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", common->pids[i]);
		f = fopen(path, "re");
		MUST(f);
		while (fgets(line, sizeof(line), f))
			if (sscanf(line, "Pss_Anon: %ld kB", &kib) == 1)
				sum += kib;
		fclose(f);
	}
	return sum;
}

int main(int argc, char **argv)
{
	bool pss = argc > 2 && !strcmp(argv[2], "pss");
	long before, after;
	int count;

	chance = 88172645463325252ull + (argc > 1 ? atoll(argv[1]) : 0) * 7919;
	common = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(common != MAP_FAILED);
	atomic_store(&common->pids[atomic_fetch_add(&common->made, 1)], getpid());
	make_memory();
	make_children(0, 3);
	settle();
	for (;;) {
		int there = 0;

		count = atomic_load(&common->made);
		count = count < PROCESSES ? count : PROCESSES;
		for (int i = 0; i < count; i++)
			there += !!common->pids[i];
		if (there == count)
			break;
		usleep(1000);
	}
	tree_await(count - 1);
	before = pss_of_all();
	victim_ready();
	victim_wait();
	after = pss_of_all();
	CHECK(!pss || after <= before * 6 / 5, "%ld KiB of memory, %ld before", after, before);

	tree_finish(count - 1);
	check_memory();
	while (waitpid(-1, NULL, 0) > 0)
		;
	return victim_done();
}
