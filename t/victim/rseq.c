/* Restartable sequences: threads count per processor in a critical section that is almost
 * all they do. A checkpoint that stops one inside, and brings it back without the abort,
 * loses a count. */
#include <sched.h>
#include <sys/rseq.h>

#include "victim.h"

#define THREADS 4
#define CPUS    1024

static uint64_t counts[CPUS][8];
static atomic_bool stop;
static atomic_ullong done;
static bool spoil;

void victim_hurt(void)
{
	spoil = true;
}

static struct rseq *mine(void)
{
	return (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
}

/* counts[cpu]++ as a long load, wait, store: 1 when it was committed. */
static int count(struct rseq *r, uint32_t cpu)
{
	struct rseq_cs cs __attribute__((aligned(32)));
	int committed = 0;

	asm volatile("lea 1f(%%rip), %%rax\n mov %%rax, 8(%[cs])\n"
		     "lea 2f(%%rip), %%rcx\n sub %%rax, %%rcx\n mov %%rcx, 16(%[cs])\n"
		     "lea 4f(%%rip), %%rax\n mov %%rax, 24(%[cs])\n"
		     "movq $0, 0(%[cs])\n"
		     "mov %[cs], %[where]\n"
		     "1: cmp %[cpu], %[cpu_id]\n jne 3f\n"
		     "mov (%[at]), %%rax\n mov $200, %%ecx\n"
		     "5: pause\n dec %%ecx\n jnz 5b\n"
		     "inc %%rax\n mov %%rax, (%[at])\n" /* the commit */
		     "2: movl $1, %[ok]\n jmp 3f\n"
		     ".byte 0x0f, 0xb9, 0x3d\n .long 0x53053053\n" /* RSEQ_SIG */
		     "4: jmp 3f\n"
		     "3:\n"
		     : [where] "=m"(r->rseq_cs), [ok] "+m"(committed)
		     : [cs] "r"(&cs), [cpu] "r"(cpu), [cpu_id] "m"(r->cpu_id),
		     [at] "r"(&counts[cpu][0])
		     : "rax", "rcx", "memory", "cc");
	r->rseq_cs = 0;
	return committed;
}

static void *thread(void *arg)
{
	struct rseq *r = mine();
	uint64_t n = 0;

	while (!stop) {
		uint32_t cpu = *(volatile uint32_t *)&r->cpu_id_start;

		n += count(r, cpu);
	}
	done += n;
	CHECK((int)r->cpu_id >= 0, "not registered any more: cpu_id is %d", (int)r->cpu_id);
	return NULL;
}

int main(void)
{
	pthread_t t[THREADS];
	uint64_t sum = 0;
	cpu_set_t set, all;

	if (!__rseq_size)
		victim_skip("the C library does not register rseq");
	for (int i = 0; i < THREADS; i++)
		t[i] = victim_thread(thread, NULL);
	/* The area follows the thread: it is registered. */
	victim_ready();
	victim_wait();
	sched_getaffinity(0, sizeof(all), &all);
	for (int i = 0; i < CPU_SETSIZE; i++) {
		if (!CPU_ISSET(i, &all))
			continue;
		CPU_ZERO(&set);
		CPU_SET(i, &set);
		sched_setaffinity(0, sizeof(set), &set);
		CHECK((int)*(volatile uint32_t *)&mine()->cpu_id == i,
			"on processor %d, rseq says %d", i, (int)mine()->cpu_id);
	}
	sched_setaffinity(0, sizeof(all), &all);
	/* After the restart they have to do it for some time more. */
	usleep(200000);
	stop = true;
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < CPUS; i++)
		sum += counts[i][0];
	if (spoil)
		sum++;
	CHECK(sum == done, "threads committed %llu, processors counted %llu", (long long)done,
		(long long)sum);
	CHECK(done > 0, "no progress");
	return victim_done();
}
