/*
 * Does at random what can be done to memory, for as long as it lives: for checkpoints that
 * write only what has changed (t/dirty.t). Written to are pages by the program, by the kernel
 * and by other processes; they are mapped, unmapped, moved, protected, advised on and forked.
 *
 *	dirtying SEED		as a victim; children and what it executes do the same
 *
 * A page is zero, or its second word is the complement of its first.
 */
#include <sched.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "victim.h"

#define PAGE     4096ul
#define SLOTS    24
#define SLOT     (2 * MIB)
#define PAGES    (SLOT / PAGE)
#define BASE     0x200000000000ul
#define CHILDREN 2
#define UNMAPPED 0
#define WRITABLE 1
#define READABLE 2

static uint8_t state[SLOTS][PAGES];
static bool has_end[SLOTS][PAGES]; /* of an object: behind that there is only SIGBUS */
static uint64_t seed, drawn;
static pid_t children[CHILDREN];
static int file, ends[2];
static int memfd = -1; /* the last one that was mapped, with this process's mappings only */
static int own_file = -1;
static char **arguments;

void victim_hurt(void)
{
	uint64_t *p = mmap((void *)BASE, SLOT, PROT_READ | PROT_WRITE,
		MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memset(state[0], WRITABLE, PAGES);
	memset(has_end[0], false, PAGES);
	p[0] = p[1] = 1;
}

static uint64_t draw(uint64_t below)
{
	return victim_word(seed, drawn++) % below;
}

static uint64_t *page_at(size_t slot, size_t page)
{
	return (uint64_t *)(BASE + slot * SLOT + page * PAGE);
}

/* A value for a page. */
static void make_words(uint64_t words[2])
{
	words[0] = victim_word(seed ^ 0x5555, drawn++);
	words[1] = ~words[0];
}

/* A run of pages that are all @want; 0: there is none at the place drawn. */
static size_t draw_run(size_t slot, size_t *first, uint8_t want)
{
	size_t most = 1 + draw(draw(4) ? 8 : PAGES), n = 0;

	*first = draw(PAGES);
	while (n < most && *first + n < PAGES && state[slot][*first + n] == want)
		n++;
	return n;
}

/* Who else has it mapped would write to it at the same time. */
static int new_memfd(void)
{
	close(memfd);
	memfd = memfd_create("dirtying", MFD_CLOEXEC);
	MUST(memfd >= 0 && !ftruncate(memfd, SLOT));
	return memfd;
}

/* A file of this process's own, with what has been written to it so far. */
static int open_own_file(void)
{
	char name[32];

	snprintf(name, sizeof(name), "dirtying.%d", getpid());
	if (own_file < 0)
		own_file = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	MUST(own_file >= 0 && !ftruncate(own_file, SLOT));
	return own_file;
}

static void map(size_t slot)
{
	size_t first = draw(4) ? 0 : draw(PAGES), n = 1 + draw(PAGES - first);
	int how = MAP_PRIVATE, fd = -1;

	switch (draw(8)) {
	case 0:
		fd = file;
		break;
	case 1:
		fd = new_memfd();
		break;
	case 2:
		how = MAP_SHARED;
		fd = new_memfd();
		break;
	case 3:
		how = MAP_SHARED;
		fd = open_own_file();
		break;
	case 4:
		how = MAP_SHARED | MAP_ANONYMOUS;
		break;
	default:
		how |= MAP_ANONYMOUS;
	}
	MUST(mmap(page_at(slot, first), n * PAGE, PROT_READ | PROT_WRITE, MAP_FIXED | how, fd,
		     0) != MAP_FAILED);
	memset(&state[slot][first], WRITABLE, n);
	memset(&has_end[slot][first], how != (MAP_PRIVATE | MAP_ANONYMOUS), n);
}

static void unmap(size_t slot)
{
	size_t first = draw(PAGES), n = 1 + draw(PAGES - first);

	MUST(!munmap(page_at(slot, first), n * PAGE));
	memset(&state[slot][first], UNMAPPED, n);
}

static void store(size_t slot)
{
	size_t first, n = draw_run(slot, &first, WRITABLE);

	for (size_t i = 0; i < n; i++)
		make_words(page_at(slot, first + i));
}

/* By the kernel, and by ways around the page's protection. */
static void store_by_kernel(size_t slot)
{
	size_t first, n = draw_run(slot, &first, WRITABLE);
	uint64_t words[2], *to;
	struct iovec local = {words, sizeof(words)}, remote = {.iov_len = sizeof(words)};
	int mem;

	if (!n)
		return;
	make_words(words);
	to = remote.iov_base = page_at(slot, first);
	switch (draw(6)) {
	case 0:
		MUST(write(ends[1], words, sizeof(words)) == sizeof(words));
		MUST(read(ends[0], to, sizeof(words)) == sizeof(words));
		break;
	case 1:
		MUST(pread(file, to, n * PAGE, 0) >= 0);
		break;
	case 2:
		MUST(process_vm_writev(getpid(), &local, 1, &remote, 1, 0) == sizeof(words));
		break;
	case 3:
		mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
		MUST(mem >= 0 && pwrite(mem, words, sizeof(words), (off_t)to) == sizeof(words));
		close(mem);
		break;
	case 4:
		/* Whether it is mapped or not, and wherever. */
		MUST(memfd < 0 || pwrite(memfd, words, sizeof(words), draw(PAGES) * PAGE) ==
					  sizeof(words));
		break;
	default:
		MUST(getrandom(to, sizeof(words[0]), 0) == sizeof(words[0]));
		to[1] = ~to[0];
	}
}

static void move(size_t slot)
{
	size_t first, n = draw_run(slot, &first, WRITABLE), to = draw(SLOTS), at = draw(PAGES);

	if (!n || to == slot)
		return;
	if (n > PAGES - at)
		n = PAGES - at;
	/* Parts of an object in another order are refused to ordinary users, as from
	 * remap_file_pages(2). */
	if (geteuid() && memchr(&has_end[slot][first], true, n))
		return;
	memset(&state[slot][first], UNMAPPED, n);
	/* Of more than one mapping it may fail half way. */
	if (mremap(page_at(slot, first), n * PAGE, n * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
		    page_at(to, at)) == MAP_FAILED) {
		MUST(!munmap(page_at(slot, first), n * PAGE));
		MUST(!munmap(page_at(to, at), n * PAGE));
		memset(&state[to][at], UNMAPPED, n);
		return;
	}
	memset(&state[to][at], WRITABLE, n);
	memcpy(&has_end[to][at], &has_end[slot][first], n);
}

static void grow(size_t slot)
{
	size_t first, n = draw_run(slot, &first, WRITABLE), more = draw(16);

	for (size_t i = first + n; i < first + n + more; i++)
		if (!n || i >= PAGES || has_end[slot][first] || state[slot][i] != UNMAPPED)
			return;
	/* By nothing it works on more than one mapping, too, of which others may have an end.
	 */
	if (!more || mremap(page_at(slot, first), n * PAGE, (n + more) * PAGE, 0) == MAP_FAILED)
		return;
	memset(&state[slot][first], WRITABLE, n + more);
	memset(&has_end[slot][first], false, n + more);
}

static void protect(size_t slot)
{
	uint8_t from = draw(2) ? WRITABLE : READABLE;
	size_t first, n = draw_run(slot, &first, from);

	if (!n)
		return;
	MUST(!mprotect(page_at(slot, first), n * PAGE,
		from == WRITABLE ? PROT_READ : PROT_READ | PROT_WRITE));
	memset(&state[slot][first], from == WRITABLE ? READABLE : WRITABLE, n);
}

static void advise(size_t slot)
{
	static const int advices[] = {MADV_DONTNEED, MADV_DONTNEED, MADV_FREE, MADV_HUGEPAGE,
		MADV_NOHUGEPAGE, 20 /* COLD */, 21 /* PAGEOUT */, 25 /* COLLAPSE */,
		MADV_DONTFORK, MADV_DOFORK, MADV_WIPEONFORK, MADV_KEEPONFORK, MADV_MERGEABLE,
		MADV_REMOVE};
	size_t first, n = draw_run(slot, &first, WRITABLE);

	/* Not all advice is for all memory. */
	if (n)
		(void)madvise(page_at(slot, first), n * PAGE, advices[draw(14)]);
}

static void live(void);

static void make_child(size_t i)
{
	if (children[i] > 0) {
		kill(children[i], SIGKILL);
		waitpid(children[i], NULL, 0);
	}
	children[i] = fork();
	MUST(children[i] >= 0);
	if (children[i])
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	memset(children, 0, sizeof(children));
	/* Its parent writes to these. */
	close(memfd);
	close(own_file);
	memfd = own_file = -1;
	/* What it has and its parent has not: regions that are left out or wiped. */
	for (size_t slot = 0; slot < SLOTS; slot++) {
		MUST(mmap(page_at(slot, 0), SLOT / 2, PROT_READ | PROT_WRITE,
			     MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
		MUST(!munmap(page_at(slot, PAGES / 2), SLOT / 2));
		memset(state[slot], WRITABLE, PAGES / 2);
		memset(has_end[slot], false, PAGES / 2);
		memset(state[slot] + PAGES / 2, UNMAPPED, PAGES / 2);
	}
	seed ^= getpid();
	live();
}

/* A child that shares all pages for a moment. */
static void fork_briefly(void)
{
	pid_t child = fork();

	MUST(child >= 0);
	if (!child) {
		for (int i = 0; i < 20; i++)
			if (state[i][0] == WRITABLE && state[i][1] == WRITABLE)
				(void)!write(ends[1], "", 0);
		_exit(0);
	}
	MUST(waitpid(child, NULL, 0) == child);
}

static void execute(void)
{
	char number[32];

	for (size_t i = 0; i < CHILDREN; i++)
		if (children[i] > 0) {
			kill(children[i], SIGKILL);
			waitpid(children[i], NULL, 0);
		}
	snprintf(number, sizeof(number), "%llu", (unsigned long long)victim_word(seed, drawn));
	execl("/proc/self/exe", arguments[0], number, "again", NULL);
	MUST(0);
}

static void check_pages(void)
{
	for (size_t slot = 0; slot < SLOTS; slot++)
		for (size_t i = 0; i < PAGES; i++) {
			uint64_t *p = page_at(slot, i);

			if (state[slot][i] == UNMAPPED || !(p[0] | p[1]))
				continue;
			CHECK(p[1] == ~p[0], "page %zu of slot %zu", i, slot);
		}
}

/* Whether it has been told to come to an end. */
static bool is_stopped(void)
{
	static const struct timespec at_once;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	return sigtimedwait(&set, NULL, &at_once) == SIGUSR1;
}

static void live(void)
{
	struct timespec nap = {.tv_nsec = 200000};

	while (!is_stopped()) {
		size_t slot = draw(SLOTS);
		uint64_t what = draw(4000);

		if (what < 1400)
			store(slot);
		else if (what < 2400)
			store_by_kernel(slot);
		else if (what < 2700)
			map(slot);
		else if (what < 2800)
			unmap(slot);
		else if (what < 3100)
			move(slot);
		else if (what < 3300)
			grow(slot);
		else if (what < 3600)
			protect(slot);
		else if (what < 3900)
			advise(slot);
		else if (what < 3980)
			nanosleep(&nap, NULL);
		else if (what < 3990)
			fork_briefly();
		else if (what < 3996 && getpid() == (pid_t)atoi(getenv("DIRTYING")))
			make_child(draw(CHILDREN));
		else if (what == 3999 && !draw(8) &&
			 getpid() == (pid_t)atoi(getenv("DIRTYING")))
			execute();
	}
}

int main(int argc, char **argv)
{
	char words[4 * PAGE];
	bool again = argc > 2;

	arguments = argv;
	seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	if (!again) {
		snprintf(words, sizeof(words), "%d", getpid());
		setenv("DIRTYING", words, 1);
	}
	for (size_t i = 0; i < 4; i++)
		make_words((uint64_t *)(words + i * PAGE));
	file = open("dirtying.file", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	MUST(file >= 0 && pwrite(file, words, sizeof(words), 0) == sizeof(words));
	MUST(!ftruncate(file, SLOT));
	MUST(!pipe2(ends, O_CLOEXEC));
	if (!again)
		victim_ready();
	live();
	for (size_t i = 0; i < CHILDREN; i++)
		if (children[i] > 0) {
			kill(children[i], SIGKILL);
			waitpid(children[i], NULL, 0);
		}
	if (getenv("VICTIM_HURT"))
		victim_hurt();
	check_pages();
	return victim_done();
}
