/* What a driver's own thread does while the program is stopped: it maps memory and gives it back, makes arenas of malloc
 * larger and smaller, and attaches segments of System V shared memory for a moment. With `background 2` the memory has a NUMA policy of its own. */
#include "t/sim/device.h"

#include <linux/mempolicy.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "t/sim/sim.h"

#define MAPPINGS 8
#define PAGE     (1ul << 12)

static void attach_one(void)
{
	int id = shmget(IPC_PRIVATE, 3 * PAGE, IPC_CREAT | 0600);
	void *p = id < 0 ? (void *)-1 : shmat(id, NULL, 0);

	/* A process that is killed before this leaves a segment: tests with it have an IPC namespace of their own. */
	if (id >= 0)
		(void)shmctl(id, IPC_RMID, NULL);
	if (p == (void *)-1)
		return;
	memset(p, 1, PAGE);
	for (int i = rand() % 2000; i; i--) /* attached for a while */
		sched_yield();
	(void)shmdt(p);
}

/* Without NUMA in the kernel, none. */
static void set_policy(void *p, size_t size)
{
	unsigned long node = 1;

	(void)syscall(SYS_mbind, p, size, MPOL_BIND, &node, 64, 0);
}

static void *work(void *arg)
{
	char *maps[MAPPINGS] = {0};
	size_t sizes[MAPPINGS];

	for (unsigned i = 0;; i = (i + 1) % MAPPINGS) {
		if (maps[i])
			munmap(maps[i], sizes[i]);
		sizes[i] = (1 + rand() % 600) * PAGE;
		maps[i] = mmap(NULL, sizes[i], PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (maps[i] == MAP_FAILED)
			abort();
		if (arg)
			set_policy(maps[i], sizes[i]);
		memset(maps[i], 1, PAGE);
		free(memset(malloc(100000 + rand() % 100000), 1, 100000));
		if (!i)
			attach_one();
	}
	return NULL;
}

void sim_work_in_background(void)
{
	int how = atoi(sim_machine("background", "0"));
	pthread_t thread;

	if (how && pthread_create(&thread, NULL, work, how > 1 ? &thread : NULL))
		abort();
}
