/* Each thread's signal mask: every signal in some thread's, none in all. */
#include "victim.h"

static pthread_barrier_t before, after;

void victim_hurt(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigprocmask(SIG_SETMASK, &set, NULL);
}

static uint64_t mask(void)
{
	uint64_t m = 0;

	syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &m, sizeof(m));
	return m;
}

static void *thread(void *arg)
{
	uint64_t m = (uint64_t)arg, other;

	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &m, NULL, sizeof(m));
	m = mask();
	pthread_barrier_wait(&before);
	pthread_barrier_wait(&after);
	other = mask();
	CHECK(other == m, "mask is %llx, was %llx", (long long)other, (long long)m);
	return NULL;
}

int main(void)
{
	uint64_t masks[] = {1ull << (SIGUSR1 - 1),
		0xffffffff00000000ull | 1ull << (SIGUSR1 - 1),
		0x55555555ull | 1ull << (SIGUSR1 - 1), ~0ull};
	uint64_t m = masks[0] | 1ull << (SIGTERM - 1) | 1ull << 40, other;
	pthread_t t[4];

	pthread_barrier_init(&before, NULL, 5);
	pthread_barrier_init(&after, NULL, 5);
	for (int i = 0; i < 4; i++)
		t[i] = victim_thread(thread, (void *)masks[i]);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &m, NULL, sizeof(m));
	pthread_barrier_wait(&before);
	victim_ready();
	victim_wait();
	other = mask();
	CHECK(other == m, "mask of the main thread is %llx, was %llx", (long long)other,
		(long long)m);
	pthread_barrier_wait(&after);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	return victim_done();
}
