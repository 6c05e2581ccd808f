/* What threads have for themselves, as far as a checkpoint refuses it. */
#include <sched.h>
#include <signal.h>

#include "refuse.h"

static atomic_int steps;
static pid_t thread;

static void await_step(int step)
{
	while (steps < step)
		usleep(500);
}

static int wait_for_end(void *arg)
{
	steps++;
	for (;;)
		syscall(SYS_pause);
	return 0;
}

/* A thread that has all in common with its maker. */
static void make_sharer(void)
{
	static _Alignas(16) char stack[64 * 1024];

	MUST(clone(wait_for_end, stack + sizeof(stack),
		     CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
			     CLONE_SYSVSEM,
		     NULL) > 0);
}

static void *share_directory(void *arg)
{
	MUST(!unshare(CLONE_FS) && !mkdir("sub", 0700) && !chdir("sub"));
	make_sharer();
	wait_for_end(NULL);
	return NULL;
}

static void directory(void)
{
	victim_thread(share_directory, NULL);
	await_step(2);
}

static void *remove_directory(void *arg)
{
	MUST(!unshare(CLONE_FS) && !mkdir("gone", 0700) && !chdir("gone") && !rmdir("../gone"));
	wait_for_end(NULL);
	return NULL;
}

static void removed_directory(void)
{
	victim_thread(remove_directory, NULL);
	await_step(1);
}

static void *share_descriptors(void *arg)
{
	MUST(!unshare(CLONE_FILES) && open("/dev/null", O_RDONLY) >= 0);
	make_sharer();
	wait_for_end(NULL);
	return NULL;
}

static void descriptors(void)
{
	victim_thread(share_descriptors, NULL);
	await_step(2);
}

static void *open_pidfd(void *arg)
{
	MUST(!unshare(CLONE_FILES) && syscall(434 /* pidfd_open */, getpid(), 0) >= 0);
	wait_for_end(NULL);
	return NULL;
}

static void descriptor_kind(void)
{
	victim_thread(open_pidfd, NULL);
	await_step(1);
}

static void *end_later(void *arg)
{
	thread = syscall(SYS_gettid);
	steps++;
	await_step(2);
	return NULL;
}

static timer_t timer;

static void ended_timer(void)
{
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN};
	const struct itimerspec far = {.it_value = {1000, 0}};
	pthread_t t = victim_thread(end_later, NULL);

	await_step(1);
	event._sigev_un._tid = thread;
	MUST(!timer_create(CLOCK_MONOTONIC, &event, &timer) &&
		!timer_settime(timer, 0, &far, NULL));
	steps++;
	MUST(!pthread_join(t, NULL));
	/* The kernel wakes up who joins it a moment before it is gone. */
	while (!syscall(SYS_tgkill, getpid(), thread, 0))
		usleep(500);
}

static void still_timed(void)
{
	struct itimerspec left;

	CHECK(!timer_gettime(timer, &left) && left.it_value.tv_sec, "timer");
}

static const struct kind kinds[] = {
	{"shared-directory", directory, nothing, '-'},
	{"removed-directory", removed_directory, nothing, '-'},
	{"shared-descriptors", descriptors, nothing, '-'},
	{"descriptor-kind", descriptor_kind, nothing, '-'},
	{"ended-timer", ended_timer, still_timed, '-'},
};

int main(int argc, char **argv)
{
	return refuse_main(kinds, sizeof(kinds) / sizeof(kinds[0]), argv[1]);
}
