/*
 * Attachments of two System V segments, one in the holes of the other: to attach either as a
 * whole there, the other would have to be away.
 */
#include <sys/mman.h>
#include <sys/shm.h>

#include "victim.h"

#define PAGE 4096

static int ids[2];
static char *base;

void victim_hurt(void)
{
	base[PAGE]++;
}

static int segment(char first, int pages)
{
	int id = shmget(IPC_PRIVATE, pages * PAGE, 0600);
	char *p = shmat(id, NULL, 0);

	MUST(id >= 0 && p != (char *)-1);
	for (int i = 0; i < pages; i++)
		p[i * PAGE] = first + i;
	MUST(!shmdt(p));
	return id;
}

int main(void)
{
	ids[0] = segment('a', 4);
	ids[1] = segment('A', 2);
	base = mmap(NULL, 4 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(base != MAP_FAILED && !munmap(base, 4 * PAGE));
	/* The second two pages of one, and the other, which is as small, before them. */
	MUST(shmat(ids[0], base, 0) == base && !munmap(base, 2 * PAGE));
	MUST(shmat(ids[1], base, 0) == base);
	for (int i = 0; i < 2; i++)
		MUST(!shmctl(ids[i], IPC_RMID, NULL));
	victim_ready();
	victim_wait();
	CHECK(base[0] == 'A' && base[PAGE] == 'B' && base[2 * PAGE] == 'c' &&
			base[3 * PAGE] == 'd',
		"%c%c%c%c", base[0], base[PAGE], base[2 * PAGE], base[3 * PAGE]);
	CHECK(!shmdt(base) && base[2 * PAGE] == 'c' && !shmdt(base), "cannot be detached");
	return victim_done();
}
