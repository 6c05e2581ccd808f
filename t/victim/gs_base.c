/* A GS base set by arch_prctl, another in each thread. */
#include <asm/prctl.h>

#include "victim.h"

static pthread_barrier_t before, after;
static uint64_t words[3][2] = {{11, 12}, {21, 22}, {31, 32}};

void victim_hurt(void)
{
	syscall(SYS_arch_prctl, ARCH_SET_GS, words[1]);
}

static uint64_t read_gs(void)
{
	uint64_t v;

	asm volatile("mov %%gs:8, %0" : "=r"(v));
	return v;
}

static void *thread(void *arg)
{
	uint64_t *mine = arg;
	unsigned long base = 0;

	MUST(!syscall(SYS_arch_prctl, ARCH_SET_GS, mine));
	pthread_barrier_wait(&before);
	pthread_barrier_wait(&after);
	syscall(SYS_arch_prctl, ARCH_GET_GS, &base);
	CHECK(base == (unsigned long)mine, "GS base is %lx, was %lx", base,
		(unsigned long)mine);
	CHECK(base && read_gs() == mine[1], "%%gs:8 is something else");
	return NULL;
}

int main(void)
{
	pthread_t a, b;
	unsigned long base = 0;

	pthread_barrier_init(&before, NULL, 3);
	pthread_barrier_init(&after, NULL, 3);
	MUST(!syscall(SYS_arch_prctl, ARCH_SET_GS, words[0]));
	a = victim_thread(thread, words[1]);
	b = victim_thread(thread, words[2]);
	pthread_barrier_wait(&before);
	victim_ready();
	victim_wait();
	pthread_barrier_wait(&after);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	syscall(SYS_arch_prctl, ARCH_GET_GS, &base);
	CHECK(base == (unsigned long)words[0], "GS base of the main thread is %lx", base);
	CHECK(read_gs() == 12, "%%gs:8 of the main thread");
	return victim_done();
}
