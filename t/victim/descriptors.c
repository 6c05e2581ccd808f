/*
 * Threads with descriptors of their own (unshare(CLONE_FILES)): numbers that lead elsewhere
 * than in the process, ones that only they have, ones that they have closed; and with open
 * files that they share with the process all the same.
 */
#include <sched.h>
#include <sys/epoll.h>

#include "victim.h"

static pthread_barrier_t ready, go;
static int common, only_process, only_thread, replaced, inside[2];

static off_t at(int fd)
{
	return lseek(fd, 0, SEEK_CUR);
}

static bool leads_to(int fd, const char *name)
{
	char path[64], link[PATH_MAX] = "";

	snprintf(path, sizeof(path), "/proc/thread-self/fd/%d", fd);
	return readlink(path, link, sizeof(link) - 1) > 0 && strstr(link, name);
}

static void *thread(void *arg)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = 5};
	char c = 0;
	int ep;

	MUST(!unshare(CLONE_FILES));
	close(only_process);
	only_thread = victim_file("only-thread", 64, 3);
	MUST(dup2(only_thread, replaced) == replaced);
	MUST(fcntl(replaced, F_SETFD, FD_CLOEXEC) == 0 && lseek(only_thread, 7, SEEK_SET) == 7);
	MUST(!pipe(inside) && write(inside[1], "p", 1) == 1);
	MUST((ep = epoll_create1(0)) >= 0 && !epoll_ctl(ep, EPOLL_CTL_ADD, inside[0], &event));
	event.data.u64 = 0;
	pthread_barrier_wait(&ready);
	pthread_barrier_wait(&go);
	CHECK(epoll_wait(ep, &event, 1, 0) == 1 && event.data.u64 == 5, "epoll of its own");
	CHECK(fcntl(only_process, F_GETFD) < 0 || only_thread == only_process,
		"a descriptor that was closed is there");
	CHECK(leads_to(only_thread, "only-thread") && at(only_thread) == 7, "the thread's own");
	CHECK(leads_to(replaced, "only-thread") && fcntl(replaced, F_GETFD) == FD_CLOEXEC,
		"what was replaced");
	CHECK(lseek(replaced, 9, SEEK_SET) == 9 && at(only_thread) == 9, "no longer the same");
	CHECK(read(inside[0], &c, 1) == 1 && c == 'p', "the pipe");
	CHECK(at(common) == 5 && lseek(common, 6, SEEK_SET) == 6, "the common one");
	pthread_barrier_wait(&ready);
	return NULL;
}

void victim_hurt(void)
{
	lseek(common, 0, SEEK_SET);
}

int main(void)
{
	pthread_t other;

	pthread_barrier_init(&ready, NULL, 2);
	pthread_barrier_init(&go, NULL, 2);
	common = victim_file("common", 64, 1);
	only_process = victim_file("only-process", 64, 2);
	replaced = victim_file("replaced", 64, 4);
	MUST(lseek(common, 5, SEEK_SET) == 5);
	other = victim_thread(thread, NULL);
	pthread_barrier_wait(&ready);
	victim_ready();
	victim_wait();
	CHECK(leads_to(only_process, "only-process") && leads_to(replaced, "replaced"),
		"the process's own");
	CHECK(fcntl(inside[0], F_GETFD) < 0 && fcntl(inside[1], F_GETFD) < 0,
		"the process has the thread's pipe");
	pthread_barrier_wait(&go);
	pthread_barrier_wait(&ready);
	CHECK(at(common) == 6, "the common one is no longer common");
	pthread_join(other, NULL);
	return victim_done();
}
