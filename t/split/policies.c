/*
 * NUMA policies of a program and of its memory, beside those of the memory that the driver maps and unmaps all the time.
 */
#include <linux/mempolicy.h>

#include "t/split/driver_victim.h"

#define PARTS 40
#define SIZE  (16 * KIB)

static char *parts[PARTS];

void victim_hurt(void)
{
	unsigned long node = 1;

	MUST(!syscall(SYS_mbind, parts[PARTS / 2], SIZE, MPOL_INTERLEAVE, &node, 64, 0));
}

static int policy_of(void *address)
{
	int mode = -1;

	MUST(!syscall(SYS_get_mempolicy, &mode, NULL, 0, address, address ? MPOL_F_ADDR : 0));
	return mode;
}

static void check_part(int i)
{
	int mode = policy_of(parts[i]), wanted = i % 2 ? MPOL_BIND : MPOL_DEFAULT;

	SAME(parts[i], SIZE, i, "memory");
	CHECK(mode == wanted, "the policy of part %d is %d, not %d", i, mode, wanted);
}

int main(void)
{
	unsigned long node = 1;

	if (syscall(SYS_get_mempolicy, NULL, NULL, 0, NULL, 0))
		victim_skip("this kernel has no NUMA policies");
	WORKS(cuInit(0));
	MUST(!syscall(SYS_set_mempolicy, MPOL_INTERLEAVE, &node, 64));
	for (int i = 0; i < PARTS; i++) {
		parts[i] = victim_anon(SIZE);
		victim_fill(parts[i], SIZE, i);
		if (i % 2)
			MUST(!syscall(SYS_mbind, parts[i], SIZE, MPOL_BIND, &node, 64, 0));
	}
	victim_ready();
	victim_wait();
	for (int i = 0; i < PARTS; i++)
		check_part(i);
	CHECK(policy_of(NULL) == MPOL_INTERLEAVE, "the thread's policy is %d", policy_of(NULL));
	return victim_done();
}
