/*
 * rank_pids.c - one of several members of a job that know each other by their process ids: each sends all others signals,
 * and reads their memory (process_vm_readv(2)), as libraries for MPI do. What it knows of them it has learnt at its start.
 *
 * The link "at.RANK" leads to "PID ADDRESS VALUE"; the link "round.RANK" to how often all others have been seen. Rank and
 * size come from the launcher (PMI_RANK, PMI_SIZE).
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "rank_link.h"

#define RANKS_MAX    8
#define READY_ROUNDS 20
#define SIGNAL       (SIGRTMIN + 3) /* each is queued */

struct peer {
	int pid;
	void *address;
	unsigned long value;
	int gone;
	unsigned taken;
	volatile unsigned signals; /* that it has sent: so many */
};

static struct peer peers[RANKS_MAX];
static volatile sig_atomic_t strangers; /* id of another sender of signals */
static unsigned long value;
static int rank, size;

static void fail(const char *what, int other)
{
	printf("rank %d: %s of rank %d (process %d): %s\n", rank, what, other, peers[other].pid,
		strerror(errno));
	exit(1);
}

static void handle(int signal, siginfo_t *info, void *context)
{
	for (int i = 0; i < size; i++)
		if (peers[i].pid == info->si_pid) {
			peers[i].signals++;
			return;
		}
	strangers = info->si_pid ? info->si_pid : -1;
}

static void meet(int other)
{
	struct peer *n = &peers[other];
	char text[128];

	while (rank_link_get("at", other, text, sizeof(text)))
		usleep(1000);
	if (sscanf(text, "%d %p %lu", &n->pid, &n->address, &n->value) != 3)
		fail("a link", other);
}

static unsigned long read_value(const struct peer *n)
{
	unsigned long got = 0;
	struct iovec here = {&got, sizeof(got)}, there = {n->address, sizeof(got)};

	errno = 0;
	return process_vm_readv(n->pid, &here, 1, &there, 1, 0) == sizeof(got) ? got : 0;
}

/* Whether it is no more, as the test wants it. */
static int is_gone(struct peer *n, int other)
{
	if (errno != ESRCH)
		return 0;
	if (!n->gone && access("go", F_OK)) {
		printf("rank %d is gone\n", other);
		fflush(stdout);
	}
	return n->gone = 1;
}

static void look_at(int other)
{
	struct peer *n = &peers[other];
	unsigned long got;

	if (n->gone)
		return;
	if (kill(n->pid, SIGNAL)) {
		if (!is_gone(n, other))
			fail("a signal to the process", other);
		return;
	}
	got = read_value(n);
	if (got != n->value && !is_gone(n, other)) {
		if (got)
			errno = EBADMSG;
		fail("the memory", other);
	}
}

static void await_signal_of(int other)
{
	struct peer *n = &peers[other];

	for (int i = 0; n->signals == n->taken && !n->gone; i++) {
		if (i > 1000)
			look_at(other); /* it may have ended meanwhile */
		if (!access("go", F_OK))
			return;
		usleep(500);
	}
	n->taken++;
}

static void begin(void)
{
	struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_RESTART};
	char text[128];
	sigset_t set;

	/* Not before we know who sends it. */
	sigemptyset(&set);
	sigaddset(&set, SIGNAL);
	sigprocmask(SIG_BLOCK, &set, NULL);
	value = getpid() * 1000003ul + rank;
	sigaction(SIGNAL, &action, NULL);
	snprintf(text, sizeof(text), "%d %p %lu", getpid(), (void *)&value, value);
	rank_link_set("at", rank, text);
	for (int i = 0; i < size; i++)
		meet(i);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

int main(void)
{
	char text[32];

	rank = atoi(getenv("PMI_RANK"));
	size = atoi(getenv("PMI_SIZE"));
	if (size > RANKS_MAX)
		return 1;
	/* Where Yama lets nobody but parents look. It fails where there is no Yama. */
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	begin();
	for (long round = 1; access("go", F_OK); round++) {
		/* A restart does not bring that back. */
		prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
		for (int i = 0; i < size; i++)
			if (i != rank)
				look_at(i);
		for (int i = 0; i < size; i++)
			if (i != rank)
				await_signal_of(i);
		if (strangers) {
			printf("rank %d: a signal of process %d\n", rank, strangers);
			return 1;
		}
		snprintf(text, sizeof(text), "%ld", round);
		rank_link_set("round", rank, text);
		if (round == READY_ROUNDS) {
			printf("ready\n");
			fflush(stdout);
		}
	}
	printf("ok\n");
	return 0;
}
