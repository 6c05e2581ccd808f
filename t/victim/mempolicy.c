/* NUMA policies of threads and of memory. With one node they are saved on request only. */
#include <linux/mempolicy.h>

#include "victim.h"

static char *p;
static int thread_mode;
static bool spoil;
static pthread_barrier_t before, after;

void victim_hurt(void)
{
	spoil = true;
}

static int policy_of(void *address, unsigned long *node)
{
	unsigned long nodes[16] = {0};
	int mode = -1;

	MUST(!syscall(
		SYS_get_mempolicy, &mode, nodes, 1024, address, address ? MPOL_F_ADDR : 0));
	*node = nodes[0];
	return mode;
}

static void *thread(void *arg)
{
	unsigned long node = 1;

	MUST(!syscall(SYS_set_mempolicy, MPOL_INTERLEAVE | MPOL_F_STATIC_NODES, &node, 64));
	pthread_barrier_wait(&before);
	pthread_barrier_wait(&after);
	if (spoil)
		syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0);
	thread_mode = policy_of(NULL, &node);
	CHECK(thread_mode == (MPOL_INTERLEAVE | MPOL_F_STATIC_NODES) && node == 1,
		"the thread's policy is %x of %lx", thread_mode, node);
	return NULL;
}

int main(void)
{
	unsigned long node = 1;
	pthread_t t;
	int mode;

	if (syscall(SYS_get_mempolicy, NULL, NULL, 0, NULL, 0))
		victim_skip("this kernel has no NUMA policies");
	p = victim_anon(64 * KIB);
	victim_fill(p, 64 * KIB, 1);
	MUST(!syscall(SYS_mbind, p + 16 * KIB, 16 * KIB, MPOL_BIND, &node, 64, 0));
	pthread_barrier_init(&before, NULL, 2);
	pthread_barrier_init(&after, NULL, 2);
	t = victim_thread(thread, NULL);
	pthread_barrier_wait(&before);
	victim_ready();
	victim_wait();
	SAME(p, 64 * KIB, 1, "memory");
	mode = policy_of(p + 16 * KIB, &node);
	CHECK(mode == MPOL_BIND && node == 1, "the memory's policy is %x of %lx", mode, node);
	mode = policy_of(p, &node);
	CHECK(mode == MPOL_DEFAULT, "the policy of other memory is %x", mode);
	mode = policy_of(NULL, &node);
	CHECK(mode == MPOL_DEFAULT, "the main thread's policy is %x", mode);
	pthread_barrier_wait(&after);
	pthread_join(t, NULL);
	return victim_done();
}
