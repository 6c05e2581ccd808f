/*
 * changing_blocks: device memory in allocations of many sizes, a third of it zero, and managed memory;
 * every SIGUSR2 changes some blocks of it, and says "changed K". Knows what each block has to be.
 */
#include "t/split/driver_victim.h"

#define BLOCK 4096ul
#define PARTS 40
#define LARGE (1ul << 30)

/* Blocks of a part, by number: seeds of what they have, 0: zeros. */
static struct part {
	CUdeviceptr address;
	size_t blocks;
	uint32_t *seeds;
} parts[PARTS];

static uint32_t last_seed;
static char *scratch;

void victim_hurt(void)
{
	struct part *p = &parts[PARTS / 2];

	cuMemsetD32_v2(p->address + (p->blocks - 1) * BLOCK + 2048, 77, 1);
}

static void write_block(struct part *p, size_t i, uint32_t seed)
{
	memset(scratch, 0, BLOCK);
	if (seed)
		victim_fill(scratch, BLOCK, seed);
	p->seeds[i] = seed;
	MUST(!cuMemcpyHtoD_v2(p->address + i * BLOCK, scratch, BLOCK));
}

static void make_part(struct part *p, int number)
{
	p->blocks = number % 7 ? 1 + number * 3 : 700;
	p->seeds = calloc(p->blocks, sizeof(*p->seeds));
	if (number == PARTS - 1)
		MUST(!cuMemAllocManaged(&p->address, p->blocks * BLOCK, 1));
	else
		MUST(!cuMemAlloc_v2(&p->address, p->blocks * BLOCK));
	for (size_t i = 0; i < p->blocks; i++)
		write_block(p, i, i % 3 ? ++last_seed : 0);
}

/* Here and there: a block that was zero, a block that is so now, a few in a row, the last one. */
static void change(int round)
{
	CUdeviceptr large;

	for (int i = 0; i < PARTS; i++) {
		struct part *p = &parts[(i + round) % PARTS];
		size_t first = victim_word(round, i) % p->blocks;

		if (i % 4)
			continue;
		for (size_t k = first; k < first + 5 && k < p->blocks; k++)
			write_block(p, k, ++last_seed);
		write_block(p, victim_word(round, ~i) % p->blocks, 0);
		write_block(p, p->blocks - 1, ++last_seed);
	}
	/* More than is kept: the driver is asked for it, and gets it back. */
	MUST(!cuMemAlloc_v2(&large, LARGE) && !cuMemFree_v2(large));
	victim_say("changed %d", round);
}

static void check_part(const struct part *p)
{
	for (size_t i = 0; i < p->blocks; i++) {
		MUST(!cuMemcpyDtoH_v2(scratch, p->address + i * BLOCK, BLOCK));
		if (p->seeds[i])
			SAME(scratch, BLOCK, p->seeds[i], "a block");
		else
			ZERO(scratch, BLOCK, "a zero block");
	}
}

int main(void)
{
	void *context;
	sigset_t set;
	int signal, round = 0;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	scratch = victim_anon(BLOCK);
	MUST(!cuInit(0) && !cuDevicePrimaryCtxRetain(&context, 0) && !cuCtxSetCurrent(context));
	for (int i = 0; i < PARTS; i++)
		make_part(&parts[i], i);
	victim_ready();
	while (!sigwait(&set, &signal) && signal == SIGUSR2)
		change(++round);
	if (getenv("VICTIM_HURT"))
		victim_hurt();
	for (int i = 0; i < PARTS; i++)
		check_part(&parts[i]);
	change(++round);
	return victim_done();
}
