/*
 * Memory that changes as fast as it can: each thread counts in the pages of its regions, one
 * after the other, and before it does looks whether the page has the count of the round before.
 * Pages that are not of one moment differ for ever. There are pages of all kinds: small, huge,
 * shared, of files, and such that a fork does not copy.
 *
 *	racing [N]	the same in N descendants as well, each the child of the one before
 *	racing N adopts	and the first is a subreaper
 *
 * SIGUSR2: closes what somebody else could hold on to, and says "let go" when nobody does.
 */
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "victim.h"

#define THREADS 2
#define PAGE    4096

struct region {
	char *at;
	size_t pages;
};

struct racer {
	struct region regions[7];
	uint64_t round;
	_Atomic bool wrong;
};

static struct racer racers[THREADS];
static atomic_bool *stop; /* of all processes */
static volatile sig_atomic_t child_signals;
static pid_t child;

void victim_hurt(void)
{
	for (size_t i = 0; i < 1024; i++)
		*(volatile uint64_t *)(racers[0].regions[0].at + i * PAGE) += 2;
}

static void count_signal(int n)
{
	(void)n;
	child_signals++;
}

/* False when the page is of another time. */
static bool advance(struct racer *r, const struct region *g, size_t page)
{
	volatile uint64_t *first = (uint64_t *)(g->at + page * PAGE), *last = first + 511;

	if (*first != r->round || *last != r->round) {
		victim_say("differs: region %zu, page %zu: %llu and %llu in round %llu",
			(size_t)(g - r->regions), page, (long long)*first, (long long)*last,
			(long long)r->round);
		return false;
	}
	*first = *last = r->round + 1;
	return true;
}

/* The last round begins after the stop has been asked for, and so sees what was changed before. */
static void *race(void *arg)
{
	struct racer *r = arg;
	bool last = false;

	while (!last && !r->wrong) {
		last = *stop;
		for (size_t i = 0; i < sizeof(r->regions) / sizeof(r->regions[0]); i++)
			for (size_t k = 0; k < r->regions[i].pages && !r->wrong; k++)
				r->wrong = !advance(r, &r->regions[i], k);
		r->round++;
	}
	return NULL;
}

static void *map(size_t size, int flags, int fd)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);

	MUST(p != MAP_FAILED);
	return p;
}

static int own_file(size_t size)
{
	int fd = memfd_create("racing", 0);

	MUST(fd >= 0 && !ftruncate(fd, size));
	return fd;
}

static void prepare(struct racer *r)
{
	const size_t small = 64 * KIB, private = MAP_PRIVATE | MAP_ANONYMOUS;
	char name[] = "racing.XXXXXX";
	int fd = mkstemp(name);
	char *huge = map(6 * MIB, private, -1);

	MUST(fd >= 0 && !ftruncate(fd, small));
	huge += -(uintptr_t)huge % (2 * MIB);
	r->regions[0] = (struct region){map(8 * MIB, private, -1), 8 * MIB / PAGE};
	r->regions[1] = (struct region){huge, 4 * MIB / PAGE};
	r->regions[2] = (struct region){map(small, private, -1), small / PAGE};
	r->regions[3] = (struct region){map(small, private, -1), small / PAGE};
	r->regions[4] =
		(struct region){map(small, MAP_SHARED | MAP_ANONYMOUS, -1), small / PAGE};
	r->regions[5] = (struct region){map(small, MAP_SHARED, own_file(small)), small / PAGE};
	r->regions[6] = (struct region){map(small, MAP_PRIVATE, fd), small / PAGE};
	madvise(r->regions[0].at, 8 * MIB, MADV_NOHUGEPAGE);
	madvise(huge, 4 * MIB, MADV_HUGEPAGE); /* without them: all the same */
	MUST(!madvise(r->regions[2].at, small, MADV_DONTFORK));
	MUST(!madvise(r->regions[3].at, small, MADV_WIPEONFORK));
}

/* ---- what a copy could hold on to ---- */

static int ends[2], locked, listening, segment;
static struct sockaddr_in address = {.sin_family = AF_INET};

static void hold(void)
{
	socklen_t size = sizeof(address);

	MUST(!pipe2(ends, O_NONBLOCK));
	locked = open("locked", O_RDWR | O_CREAT, 0600);
	MUST(locked >= 0 && !flock(locked, LOCK_EX));
	listening = socket(AF_INET, SOCK_STREAM, 0);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	MUST(!bind(listening, (void *)&address, size) && !listen(listening, 1));
	MUST(!getsockname(listening, (void *)&address, &size));
	segment = shmget(IPC_PRIVATE, PAGE, 0600);
	MUST(segment >= 0 && shmat(segment, NULL, 0) != (void *)-1);
	MUST(!shmctl(segment, IPC_RMID, NULL));
}

static void let_go(void)
{
	int other = open("locked", O_RDWR), again = socket(AF_INET, SOCK_STREAM, 0);
	struct shmid_ds ds;
	char byte;

	close(ends[1]);
	CHECK(!read(ends[0], &byte, 1), "somebody has the pipe open");
	close(locked);
	CHECK(!flock(other, LOCK_EX | LOCK_NB), "somebody has the file locked");
	close(listening);
	CHECK(!bind(again, (void *)&address, sizeof(address)), "somebody has the port");
	CHECK(!shmctl(segment, IPC_STAT, &ds) && ds.shm_nattch == 1,
		"somebody has the segment attached: %lu", (unsigned long)ds.shm_nattch);
	victim_say("let go");
}

/* ---- */

/* Nobody but the children that this process has made itself is one. */
static void check_children(bool ended)
{
	siginfo_t info = {0};
	int r = waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL);
	int error = errno;

	/* By then they may have ended. */
	if (!ended && *stop)
		return;
	CHECK(child ? !r && !info.si_pid : r < 0 && error == ECHILD, "a child %d has ended",
		info.si_pid);
	CHECK(ended || !child_signals, "%d signals of children", (int)child_signals);
}

static int run(int descendants, bool first)
{
	pthread_t t[THREADS];
	sigset_t set;
	int status = 0, signo;

	if (descendants) {
		child = fork();
		if (!child)
			exit(run(descendants - 1, false));
	}
	if (first)
		hold();
	for (int i = 0; i < THREADS; i++) {
		prepare(&racers[i]);
		t[i] = victim_thread(race, &racers[i]);
	}
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	if (first) {
		victim_ready();
		while (signo = sigwaitinfo(&set, NULL), signo != SIGUSR1)
			if (signo == SIGUSR2)
				let_go();
		if (getenv("VICTIM_HURT"))
			victim_hurt();
		usleep(50000);
		*stop = true;
	}
	while (!*stop) {
		check_children(false);
		usleep(5000);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(t[i], NULL);
		CHECK(!racers[i].wrong, "pages of different times");
	}
	if (child) {
		MUST(waitpid(child, &status, 0) == child);
		CHECK(!status, "a descendant has failed");
		child = 0;
	}
	check_children(true);
	CHECK(child_signals == !!descendants, "%d signals of children", (int)child_signals);
	return victim_failures ? 1 : 0;
}

int main(int argc, char **argv)
{
	sigset_t set;

	stop = map(PAGE, MAP_SHARED | MAP_ANONYMOUS, -1);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGCHLD, count_signal);
	if (argc > 2)
		MUST(!prctl(PR_SET_CHILD_SUBREAPER, 1));
	if (run(argc > 1 ? atoi(argv[1]) : 0, true))
		return 1;
	return victim_done();
}
