/*
 * tree.h - for victims of several processes: children that wait at a gate until the first
 * process has been told to go on, then check what is theirs.
 */
#ifndef T_VICTIM_TREE_H
#define T_VICTIM_TREE_H

#include <sys/wait.h>

#include "victim.h"

/* Both are inherited by all, but not by programs that they execute: each would add pipes of its
 * own. A byte in the gate lets one pass; what a child has found goes into the report, as not
 * all of them are children of the first. */
static int tree_gate[2], tree_report[2];
static pid_t tree_root;
static int tree_sent; /* children that will report */

__attribute__((constructor)) static inline void tree_start(void)
{
	MUST(!pipe2(tree_gate, O_CLOEXEC) && !pipe2(tree_report, O_CLOEXEC));
	tree_root = getpid();
}

static inline void tree_pass(void)
{
	char c;

	while (read(tree_gate[0], &c, 1) < 0 && errno == EINTR)
		;
}

static inline void tree_open(int count)
{
	for (int i = 0; i < count; i++)
		MUST(write(tree_gate[1], "", 1) == 1);
}

static inline void tree_tell(char what)
{
	MUST(write(tree_report[1], &what, 1) == 1);
}

/* The next report, or 0 when there is none for a long while. */
static inline char tree_hear(void)
{
	struct timeval limit = {.tv_sec = 20};
	fd_set set;
	char c = 0;

	FD_ZERO(&set);
	FD_SET(tree_report[0], &set);
	if (select(tree_report[0] + 1, &set, NULL, NULL, &limit) == 1)
		(void)!read(tree_report[0], &c, 1);
	return c;
}

/* Run @prepare, say that it is done, wait at the gate, run @check, end. */
static inline void __attribute__((noreturn))
tree_live(void (*prepare)(void), void (*check)(void))
{
	pid_t pid = getpid();

	if (prepare)
		prepare();
	tree_tell('r');
	tree_pass();
	CHECK(getpid() == pid, "process id was %d, is %d", pid, getpid());
	if (check)
		check();
	tree_tell(victim_failures ? 'x' : 'k');
	_exit(victim_failures ? 1 : 0);
}

/* A child that does so. */
static inline pid_t tree_child(void (*prepare)(void), void (*check)(void))
{
	pid_t pid = fork();

	MUST(pid >= 0);
	if (!pid)
		tree_live(prepare, check);
	tree_sent++;
	return pid;
}

/* In the first process: until all @count have prepared. */
static inline void tree_await(int count)
{
	for (int i = 0; i < count; i++)
		MUST(tree_hear() == 'r');
}

/* Let all go, and hear what they have found. */
static inline void tree_finish(int count)
{
	tree_open(count);
	for (int i = 0; i < count; i++) {
		char c = tree_hear();

		CHECK(c == 'k', "a child reports %d", c);
	}
}

static inline void tree_reap(pid_t pid, int want)
{
	int status = -1;
	pid_t got = waitpid(pid, &status, 0);

	CHECK(got == pid && status == want, "waitpid(%d): %d, status %x, not %x", pid, got,
		status, want);
}

/* Until @pid is in @state, as /proc tells. */
static inline void tree_until_state(pid_t pid, char state)
{
	uint64_t limit = victim_limit();
	char path[64], text[512], *p;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	for (;;) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

		if (fd >= 0)
			close(fd);
		text[n > 0 ? n : 0] = '\0';
		p = strrchr(text, ')');
		if (p && p[2] == state)
			return;
		MUST(victim_now() < limit);
		usleep(500);
	}
}

#endif
