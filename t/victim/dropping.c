/*
 * Memory that the program drops at SIGUSR2, guards among it included: in the image of a checkpoint that
 * began before, all of it is still there. Whether it has been dropped is for the memory itself to tell.
 */
#include "victim.h"

#define PAGE  4096ul
#define SIZE  (8 * MIB)
#define GUARD 100ul /* a page in the middle */

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#define MADV_GUARD_REMOVE  103
#endif

static uint64_t *memory;
static bool guarded;
static volatile bool dropped;

void victim_hurt(void)
{
	memory[1]++;
}

static uint64_t *page_at(size_t i)
{
	return memory + i * (PAGE / sizeof(*memory));
}

static void drop(void)
{
	if (guarded)
		MUST(!madvise(page_at(GUARD), PAGE, MADV_GUARD_REMOVE));
	MUST(!madvise(memory, SIZE, MADV_DONTNEED));
	dropped = true;
	victim_say("dropped");
}

/* Read by the kernel, as the program would be killed. */
static bool is_guard(size_t page)
{
	int ends[2];
	bool guard;

	MUST(!pipe(ends));
	guard = write(ends[1], page_at(page), 1) < 0 && errno == EFAULT;
	close(ends[0]);
	close(ends[1]);
	return guard;
}

static void check_region(void)
{
	CHECK(is_guard(GUARD) == guarded, "the guard");
	for (size_t i = 0; i < SIZE / PAGE; i++)
		if (i != GUARD)
			CHECK(page_at(i)[1] == i + 1, "page %zu has %llu", i,
				(unsigned long long)page_at(i)[1]);
}

int main(void)
{
	sigset_t set;
	int signo;

	memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(memory != MAP_FAILED);
	madvise(memory, SIZE, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < SIZE / PAGE; i++)
		page_at(i)[1] = i + 1;
	guarded = !madvise(page_at(GUARD), PAGE, MADV_GUARD_INSTALL);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	victim_ready();
	while (signo = sigwaitinfo(&set, NULL), signo != SIGUSR1)
		drop();
	if (getenv("VICTIM_HURT"))
		victim_hurt();
	if (!dropped)
		check_region();
	return victim_done();
}
