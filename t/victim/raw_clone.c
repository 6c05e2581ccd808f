/* Threads made by clone(2) without the C library: no TLS, no robust list, an id word that the
 * kernel clears at their end. */
#include <linux/futex.h>
#include <sched.h>

#include "victim.h"

#define N 3

static volatile int go __attribute__((used));
static volatile int up[N], kept[N];
static volatile int ids[N], cleared[N];
static char *stacks[N];

void victim_hurt(void)
{
	kept[1] = 0;
	ids[1]++;
}

/* Nothing here may touch errno or any other thread-local data. */
static long raw(long nr, long a, long b, long c, long d)
{
	register long r10 asm("r10") = d;
	long r;

	asm volatile("syscall"
		     : "=a"(r)
		     : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10)
		     : "rcx", "r11", "memory");
	return r;
}

static int body(void *arg)
{
	long n = (long)arg;

	ids[n] = raw(SYS_gettid, 0, 0, 0, 0);
	up[n] = 1;
	while (!go)
		raw(SYS_futex, (long)&go, FUTEX_WAIT, 0, 0);
	kept[n] = ids[n] == raw(SYS_gettid, 0, 0, 0, 0) ? 1 : -1;
	raw(SYS_exit, 0, 0, 0, 0);
	return 0;
}

int main(void)
{
	for (long i = 0; i < N; i++) {
		stacks[i] = victim_anon(64 * KIB);
		cleared[i] = 1;
		MUST(clone(body, stacks[i] + 64 * KIB,
			     CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
				     CLONE_SYSVSEM | CLONE_CHILD_CLEARTID,
			     (void *)i, NULL, NULL, &cleared[i]) > 0);
		while (!up[i])
			sched_yield();
		victim_until_blocked(ids[i], SYS_futex);
	}
	victim_ready();
	victim_wait();
	go = 1;
	raw(SYS_futex, (long)&go, FUTEX_WAKE, N, 0);
	for (int i = 0; i < N; i++) {
		struct timespec limit = {20, 0};

		while (cleared[i] &&
			!raw(SYS_futex, (long)&cleared[i], FUTEX_WAIT, 1, (long)&limit))
			;
		CHECK(!cleared[i], "thread %d: the kernel does not clear its id word", i);
		CHECK(kept[i] == 1, "thread %d: its id has changed", i);
	}
	return victim_done();
}
