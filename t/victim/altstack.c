/* Alternate signal stacks of threads, one of which runs on its own when it is stopped; and
 * SS_AUTODISARM. */
#include "victim.h"

#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1U << 31)
#endif

static pthread_barrier_t before, after;
static char *stacks[3];
static __thread volatile int handled;
static atomic_int stayed;
static bool spoil;

void victim_hurt(void)
{
	spoil = true;
}

static bool on(char *stack)
{
	char here;

	return &here >= stack && &here < stack + 64 * KIB;
}

static void handler(int n)
{
	if (on(stacks[n == SIGUSR2 ? 1 : n - SIGRTMIN]))
		handled++;
}

static void stay(int n)
{
	uint64_t local[32];

	victim_fill(local, sizeof(local), 5);
	stayed = on(stacks[1]);
	pthread_barrier_wait(&before);
	pthread_barrier_wait(&after);
	SAME(local, sizeof(local), 5, "what a handler has on the alternate stack");
}

static void *thread(void *arg)
{
	size_t n = (size_t)arg;
	stack_t s = {.ss_sp = stacks[n], .ss_size = 64 * KIB}, now;

	if (n == 2)
		s.ss_flags = SS_AUTODISARM;
	MUST(!sigaltstack(&s, NULL));
	if (n == 1) {
		pthread_kill(pthread_self(), SIGUSR2);
	} else {
		pthread_barrier_wait(&before);
		pthread_barrier_wait(&after);
	}
	if (spoil && n == 0) {
		s.ss_flags = SS_DISABLE;
		sigaltstack(&s, NULL);
	}
	MUST(!sigaltstack(NULL, &now));
	CHECK(now.ss_sp == stacks[n] && now.ss_size == 64 * KIB, "thread %zu: %p, %zu", n,
		now.ss_sp, now.ss_size);
	CHECK((unsigned)now.ss_flags == (n == 2 ? SS_AUTODISARM : 0), "thread %zu: flags %x", n,
		now.ss_flags);
	handled = 0;
	pthread_kill(pthread_self(), SIGRTMIN + n);
	CHECK(handled == 1, "thread %zu: its handler ran elsewhere", n);
	return NULL;
}

int main(void)
{
	struct sigaction a = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
	pthread_t t[3];

	pthread_barrier_init(&before, NULL, 4);
	pthread_barrier_init(&after, NULL, 4);
	for (int i = 0; i < 3; i++) {
		stacks[i] = victim_anon(64 * KIB);
		sigaction(SIGRTMIN + i, &a, NULL);
	}
	a.sa_handler = stay;
	sigaction(SIGUSR2, &a, NULL);
	for (size_t i = 0; i < 3; i++)
		t[i] = victim_thread(thread, (void *)i);
	pthread_barrier_wait(&before);
	MUST(stayed);
	victim_ready();
	victim_wait();
	pthread_barrier_wait(&after);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	return victim_done();
}
