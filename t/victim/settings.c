/* Settings of threads and processes by prctl(2) and /proc that nothing else is about. */
#include <sys/prctl.h>

#include "victim.h"

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#define PR_GET_MDWE 66
#endif
#define PR_GET_MEMORY_MERGE_ 68
#define PR_SET_MEMORY_MERGE_ 67
#define PR_SET_IO_FLUSHER_   57
#define PR_GET_IO_FLUSHER_   58

static pthread_barrier_t before, after;
static bool spoil, mdwe, merge;
static int deny;

void victim_hurt(void)
{
	spoil = true;
}

struct kept {
	int mce, tsc, flusher, speculation[3];
};

static void look_at_settings(struct kept *k)
{
	k->mce = prctl(PR_MCE_KILL_GET, 0, 0, 0, 0);
	prctl(PR_GET_TSC, &k->tsc);
	k->flusher = prctl(PR_GET_IO_FLUSHER_, 0, 0, 0, 0);
	for (int i = 0; i < 3; i++)
		k->speculation[i] = prctl(PR_GET_SPECULATION_CTRL, i, 0, 0, 0);
}

/* Each thread has settings of its own. */
static void *thread(void *arg)
{
	size_t n = (size_t)arg;
	struct kept was, is;

	if (n == 0) {
		MUST(!prctl(PR_MCE_KILL, PR_MCE_KILL_SET, PR_MCE_KILL_EARLY, 0, 0));
		(void)prctl(PR_SET_IO_FLUSHER_, 1, 0, 0, 0); /* takes a privilege */
	}
	if (n == 1) {
		MUST(!prctl(PR_MCE_KILL, PR_MCE_KILL_SET, PR_MCE_KILL_LATE, 0, 0));
		/* From here on this thread must not read the clock. */
		MUST(!prctl(PR_SET_TSC, PR_TSC_SIGSEGV));
		(void)prctl(PR_SET_SPECULATION_CTRL, 0, PR_SPEC_DISABLE, 0, 0);
	}
	look_at_settings(&was);
	pthread_barrier_wait(&before);
	pthread_barrier_wait(&after);
	if (spoil)
		prctl(PR_MCE_KILL, PR_MCE_KILL_SET, PR_MCE_KILL_DEFAULT, 0, 0);
	look_at_settings(&is);
	CHECK(is.mce == was.mce, "thread %zu: policy for bad memory %d, was %d", n, is.mce,
		was.mce);
	CHECK(is.tsc == was.tsc, "thread %zu: time stamp counter %d, was %d", n, is.tsc,
		was.tsc);
	CHECK(is.flusher == was.flusher, "thread %zu: I/O flusher %d, was %d", n, is.flusher,
		was.flusher);
	for (int i = 0; i < 3; i++)
		CHECK(is.speculation[i] == was.speculation[i],
			"thread %zu: speculation %d is %d, was %d", n, i, is.speculation[i],
			was.speculation[i]);
	return NULL;
}

static long filter(const char *set)
{
	int fd = open("/proc/self/coredump_filter", O_RDWR);
	char text[32] = "";

	if (fd < 0)
		return -1;
	if (set)
		MUST(write(fd, set, strlen(set)) == (ssize_t)strlen(set));
	else if (read(fd, text, sizeof(text) - 1) <= 0)
		return -1;
	close(fd);
	return strtol(text, NULL, 16);
}

static void set_up_process(void)
{
	filter("0x55");
	/* Not for children, as Linux 6.6 can have it. */
	mdwe = !prctl(PR_SET_MDWE, 1 | 2, 0, 0, 0) || !prctl(PR_SET_MDWE, 1, 0, 0, 0);
	deny = prctl(PR_GET_MDWE, 0, 0, 0, 0);
	merge = !prctl(PR_SET_MEMORY_MERGE_, 1, 0, 0, 0); /* takes a privilege */
}

static void check_process(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(filter(NULL) == 0x55 || filter(NULL) == -1, "coredump_filter is %lx",
		filter(NULL));
	CHECK(!mdwe || (p == MAP_FAILED && errno == EACCES), "memory may be writable code");
	CHECK(prctl(PR_GET_MDWE, 0, 0, 0, 0) == deny, "PR_GET_MDWE is %d, was %d",
		prctl(PR_GET_MDWE, 0, 0, 0, 0), deny);
	CHECK(prctl(PR_GET_MEMORY_MERGE_, 0, 0, 0, 0) == merge || !merge,
		"memory is no longer merged");
}

int main(void)
{
	pthread_t t[2];

	pthread_barrier_init(&before, NULL, 3);
	pthread_barrier_init(&after, NULL, 3);
	for (size_t i = 0; i < 2; i++)
		t[i] = victim_thread(thread, (void *)i);
	set_up_process();
	pthread_barrier_wait(&before);
	victim_ready();
	victim_wait();
	check_process();
	pthread_barrier_wait(&after);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	return victim_done();
}
