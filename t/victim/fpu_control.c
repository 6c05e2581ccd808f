/* The control words of SSE (mxcsr) and x87, and numbers on the x87 stack, per thread. */
#include <fenv.h>

#include "victim.h"

static pthread_barrier_t before, after;

static unsigned mxcsr(void)
{
	unsigned v;

	asm volatile("stmxcsr %0" : "=m"(v));
	return v & ~0x3fu; /* the low bits say which exceptions there were */
}

static unsigned short control(void)
{
	unsigned short v;

	asm volatile("fnstcw %0" : "=m"(v));
	return v;
}

static bool spoil;

void victim_hurt(void)
{
	spoil = true;
}

static void *thread(void *arg)
{
	int rounding[] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};
	size_t n = (size_t)arg;
	volatile double one = 1, three = 3, third;
	unsigned m;
	unsigned short c;
	long double back;

	fesetround(rounding[n]);
	asm volatile("ldmxcsr %0" ::"m"(*(unsigned[]){mxcsr() | 0x8000}));
	m = mxcsr();
	c = control();
	third = one / three;
	/* pi stays on the x87 stack while the thread sleeps in the barrier. */
	asm volatile("fldpi");
	pthread_barrier_wait(&before);
	pthread_barrier_wait(&after);
	asm volatile("fstpt %0" : "=m"(back));
	if (spoil)
		fesetround(FE_TONEAREST);
	CHECK(mxcsr() == m, "thread %zu: mxcsr is %x, was %x", n, mxcsr(), m);
	CHECK(control() == c, "thread %zu: x87 control is %x, was %x", n, control(), c);
	CHECK(one / three == third, "thread %zu: 1/3 is another number", n);
	CHECK((double)back > 3.14159 && (double)back < 3.1416, "thread %zu: pi is %Lf", n,
		back);
	return NULL;
}

int main(void)
{
	pthread_t t[4];

	pthread_barrier_init(&before, NULL, 5);
	pthread_barrier_init(&after, NULL, 5);
	for (size_t i = 0; i < 4; i++)
		t[i] = victim_thread(thread, (void *)i);
	pthread_barrier_wait(&before);
	victim_ready();
	victim_wait();
	pthread_barrier_wait(&after);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	return victim_done();
}
