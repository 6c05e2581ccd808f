/*
 * Seccomp filters: one of the process, a second one of a thread, and two children that may do
 * next to nothing, by a filter that kills and by strict mode. Root's, as only root can save
 * them.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

#include "tree.h"

#define WHICH BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
#define IF(nr, result)                                                                         \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (nr), 0, 1), BPF_STMT(BPF_RET | BPF_K, (result))
#define ELSE(result) BPF_STMT(BPF_RET | BPF_K, (result))

static pthread_barrier_t ready, go;
static char before[2][256];
static pid_t jailed[2];

static void load(struct sock_filter *filter, size_t count)
{
	struct sock_fprog program = {.len = count, .filter = filter};

	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program))
		victim_skip("no seccomp filters");
}
#define LOAD(filter) load((filter), sizeof(filter) / sizeof((filter)[0]))

/* A call that succeeds for everybody fails with an error of the filter's. */
static void load_error(long nr, int error)
{
	struct sock_filter filter[] = {
		WHICH, IF(nr, SECCOMP_RET_ERRNO | error), ELSE(SECCOMP_RET_ALLOW)};

	LOAD(filter);
}

static bool fails(long nr, int error)
{
	return syscall(nr) < 0 && errno == error;
}

static void look_at_status(char *text, size_t size)
{
	char line[256];
	FILE *f = fopen("/proc/thread-self/status", "re");

	*text = 0;
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "Seccomp", 7) || !strncmp(line, "NoNewPrivs", 10))
			strncat(text, line, size - strlen(text) - 1);
	if (f)
		fclose(f);
}

static void check_thread(int n)
{
	char now[256];

	look_at_status(now, sizeof(now));
	CHECK(!strcmp(now, before[n]), "thread %d was\n%sis\n%s", n, before[n], now);
	CHECK(fails(SYS_getppid, 77), "thread %d: the filter is gone", n);
	CHECK(fails(SYS_getpgrp, 78) == (n == 1), "thread %d: the other filter", n);
}

static void *thread(void *arg)
{
	load_error(SYS_getpgrp, 78);
	look_at_status(before[1], sizeof(before[1]));
	pthread_barrier_wait(&ready);
	pthread_barrier_wait(&go);
	check_thread(1);
	return NULL;
}

/* What follows makes no calls but read, write and exit. */
static void __attribute__((noreturn)) stay(void)
{
	char c;

	if (read(tree_gate[0], &c, 1) != 1)
		syscall(SYS_exit, 1);
	c = 'k';
	syscall(SYS_exit, write(tree_report[1], &c, 1) != 1);
	__builtin_unreachable();
}

static void in_strict_mode(void)
{
	tree_tell('r');
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
		_exit(1);
	stay();
}

static void in_jail(void)
{
	struct sock_filter filter[] = {WHICH, IF(SYS_read, SECCOMP_RET_ALLOW),
		IF(SYS_write, SECCOMP_RET_ALLOW), IF(SYS_exit, SECCOMP_RET_ALLOW),
		ELSE(SECCOMP_RET_KILL_PROCESS)};

	LOAD(filter);
	tree_tell('r');
	stay();
}

static void (*const jails[2])(void) = {in_strict_mode, in_jail};

void victim_hurt(void)
{
	strcpy(before[1], "nothing");
	kill(jailed[1], SIGKILL);
	tree_tell('x');
}

int main(void)
{
	pthread_t other;

	if (geteuid())
		victim_skip("root alone can save seccomp filters");
	pthread_barrier_init(&ready, NULL, 2);
	pthread_barrier_init(&go, NULL, 2);
	for (int i = 0; i < 2; i++) {
		jailed[i] = fork();
		if (!jailed[i])
			jails[i]();
	}
	tree_await(2);
	tree_until_state(jailed[0], 'S');
	load_error(SYS_getppid, 77);
	look_at_status(before[0], sizeof(before[0]));
	other = victim_thread(thread, NULL);
	pthread_barrier_wait(&ready);
	victim_ready();
	victim_wait();
	check_thread(0);
	pthread_barrier_wait(&go);
	pthread_join(other, NULL);
	tree_finish(2);
	tree_reap(jailed[0], 0);
	tree_reap(jailed[1], 0);
	return victim_done();
}
