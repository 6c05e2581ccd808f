/*
 * Memory that is used in all ways at once as soon as the program is back (t/lazy.t): two threads
 * read, write, drop, move, unmap, protect and fork theirs, and know what each page has to hold.
 *
 *	lazy child	makes a child, and both look at all when they get SIGUSR1 once more
 */
#include <sys/wait.h>

#include "victim.h"

#define PAGE    4096ul
#define PAGES   2048ul
#define AREA    (PAGES * PAGE)
#define THREADS 2
#define STEPS   400

struct area {
	char *at;
	uint64_t holds[PAGES]; /* what it was filled from, 0: zeros */
	uint64_t drawn, number;
	int ends[2];
};

static struct area areas[THREADS];

/* Held while an area has a hole: a mapping that another thread makes could land there. */
static pthread_mutex_t holes = PTHREAD_MUTEX_INITIALIZER;

void victim_hurt(void)
{
	areas[1].at[1000 * PAGE + 5] ^= 1;
}

static uint64_t draw(struct area *a, uint64_t below)
{
	return victim_word(77 + a->number, a->drawn++) % below;
}

static bool page_is_right(struct area *a, const void *data, size_t page, const char *what)
{
	return a->holds[page] ? SAME(data, PAGE, a->holds[page], what) : ZERO(data, PAGE, what);
}

static bool all_right(struct area *a, const char *what)
{
	for (size_t i = 0; i < PAGES; i++)
		if (!page_is_right(a, a->at + i * PAGE, i, what))
			return false;
	return true;
}

static void fill_page(struct area *a, size_t page)
{
	a->holds[page] = 1 + draw(a, 1u << 20);
	victim_fill(a->at + page * PAGE, PAGE, a->holds[page]);
}

static void forget(struct area *a, size_t first, size_t count)
{
	memset(&a->holds[first], 0, count * sizeof(a->holds[0]));
}

/* The kernel reads one page and writes another. */
static void copy_by_kernel(struct area *a, size_t from, size_t to)
{
	CHECK(write(a->ends[1], a->at + from * PAGE, PAGE) == (ssize_t)PAGE, "write: %s",
		strerror(errno));
	CHECK(read(a->ends[0], a->at + to * PAGE, PAGE) == (ssize_t)PAGE, "read: %s",
		strerror(errno));
	a->holds[to] = a->holds[from];
}

/* Two runs of pages change their places by way of a third one. */
static void swap(struct area *a, size_t one, size_t other, size_t count)
{
	const int how = MREMAP_MAYMOVE | MREMAP_FIXED;
	char *aside;
	uint64_t held;

	pthread_mutex_lock(&holes);
	aside = victim_anon(count * PAGE);
	MUST(mremap(a->at + one * PAGE, count * PAGE, count * PAGE, how, aside) == aside);
	MUST(mremap(a->at + other * PAGE, count * PAGE, count * PAGE, how,
		     a->at + one * PAGE) != MAP_FAILED);
	MUST(mremap(aside, count * PAGE, count * PAGE, how, a->at + other * PAGE) !=
		MAP_FAILED);
	pthread_mutex_unlock(&holes);
	for (size_t i = 0; i < count; i++) {
		held = a->holds[one + i];
		a->holds[one + i] = a->holds[other + i];
		a->holds[other + i] = held;
	}
}

static void map_anew(struct area *a, size_t first, size_t count)
{
	void *at = a->at + first * PAGE;

	pthread_mutex_lock(&holes);
	MUST(!munmap(at, count * PAGE));
	MUST(mmap(at, count * PAGE, PROT_READ | PROT_WRITE,
		     MAP_FIXED_NOREPLACE | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == at);
	pthread_mutex_unlock(&holes);
	forget(a, first, count);
}

/* The child has all as it is now, whatever the parent does meanwhile. */
static void fork_area(struct area *a)
{
	pid_t pid = fork();
	int status;

	MUST(pid >= 0);
	if (!pid)
		_exit(!all_right(a, "memory of a child"));
	for (size_t i = 0; i < PAGES; i += 7)
		fill_page(a, i);
	MUST(waitpid(pid, &status, 0) == pid);
	CHECK(!status, "the child ends with status %#x", status);
}

/* What a child is not to have; the rest it has. */
static void fork_without(struct area *a, size_t first, size_t count)
{
	void *at = a->at + first * PAGE;
	pid_t pid;
	int status;

	MUST(!madvise(at, count * PAGE, MADV_WIPEONFORK));
	pid = fork();
	MUST(pid >= 0);
	if (!pid) {
		forget(a, first, count);
		_exit(!all_right(a, "memory of a child that has not got all"));
	}
	MUST(waitpid(pid, &status, 0) == pid);
	CHECK(!status, "the child ends with status %#x", status);
	MUST(!madvise(at, count * PAGE, MADV_KEEPONFORK));
}

static void step(struct area *a)
{
	size_t count = 1 + draw(a, 40), first = draw(a, PAGES / 2 - count),
	       other = PAGES / 2 + draw(a, PAGES / 2 - count);
	char *at = a->at + first * PAGE;

	switch (draw(a, 8)) {
	case 0:
		page_is_right(a, at, first, "a page");
		break;
	case 1:
		fill_page(a, first);
		break;
	case 2:
		MUST(!madvise(at, count * PAGE, MADV_DONTNEED));
		forget(a, first, count);
		break;
	case 3:
		swap(a, first, other, 1);
		break;
	case 4:
		map_anew(a, first, count);
		break;
	case 5:
		MUST(!mprotect(at, count * PAGE, PROT_READ));
		page_is_right(a, at, first, "a page that is read-only");
		MUST(!mprotect(at, count * PAGE, PROT_READ | PROT_WRITE));
		break;
	case 6:
		copy_by_kernel(a, first, other);
		break;
	default:
		page_is_right(a, a->at + other * PAGE, other, "another page");
	}
}

static void *use(void *arg)
{
	struct area *a = arg;

	/* Later, a run may be of several mappings, which mremap(2) does not move. */
	swap(a, 500, PAGES / 2 + 300, 200);
	swap(a, 600, PAGES / 2 + 400, 50);
	for (int i = 0; i < STEPS; i++) {
		step(a);
		if (i == STEPS / 4)
			fork_without(a, 300, 50);
		if (i % (STEPS / 4) == 7)
			fork_area(a);
	}
	all_right(a, "memory");
	return NULL;
}

static void prepare(struct area *a, size_t number)
{
	a->number = number;
	a->at = victim_anon(AREA);
	MUST(!pipe(a->ends));
	for (size_t i = 0; i < PAGES; i++)
		if (draw(a, 4))
			fill_page(a, i);
}

static int look_with_child(void)
{
	pid_t pid = fork();

	MUST(pid >= 0);
	if (!pid)
		victim_say("child %d", getpid());
	victim_wait();
	for (size_t i = 0; i < THREADS; i++)
		all_right(&areas[i], "memory");
	return pid ? victim_done() : victim_failures;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];

	for (size_t i = 0; i < THREADS; i++)
		prepare(&areas[i], i);
	victim_ready();
	victim_wait();
	if (argc > 1 && !strcmp(argv[1], "child"))
		return look_with_child();
	for (size_t i = 0; i < THREADS; i++)
		threads[i] = victim_thread(use, &areas[i]);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return victim_done();
}
