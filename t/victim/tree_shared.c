/*
 * What processes share: anonymous memory with a semaphore and a counter in it, a memfd and an
 * unlinked file that are mapped, the position in a file, file status flags.
 */
#include <linux/futex.h>
#include <semaphore.h>

#include "tree.h"

#define TURNS 1000

static struct shared {
	sem_t lock;
	pthread_mutex_t mutex;
	long counter;
	_Atomic int futex, asleep;
	char pattern[64 * 1024];
} * shared;
static char *memfd_map, *unlinked_map;
static int file, unlinked;
static pid_t child, sleeper;

static void count(void)
{
	for (int i = 0; i < TURNS; i++) {
		long before;

		while (sem_wait(&shared->lock))
			;
		before = shared->counter;
		if (i % 100 == 0)
			sched_yield();
		shared->counter = before + 1;
		sem_post(&shared->lock);
	}
}

static void see_same(void)
{
	char word[4] = "";

	SAME(shared->pattern, sizeof(shared->pattern), 5, "shared memory");
	SAME(memfd_map, 64 * KIB, 6, "a memfd");
	SAME(unlinked_map, 64 * KIB, 7, "an unlinked file");
	CHECK(read(file, word, 3) == 3 && !memcmp(word, "456", 3), "'%s' at the position",
		word);
	CHECK(fcntl(file, F_GETFL) & O_APPEND, "flags");
	pthread_mutex_lock(&shared->mutex);
	memfd_map[0] = unlinked_map[0] = 'c';
	pthread_mutex_unlock(&shared->mutex);
	count();
}

static void sleep_in_futex(void)
{
	shared->asleep = 1;
}

static void woken(void)
{
	while (!shared->futex)
		syscall(SYS_futex, &shared->futex, FUTEX_WAIT, 0, NULL, NULL, 0);
}

void victim_hurt(void)
{
	unlinked_map[9] ^= 1;
}

static void prepare(void)
{
	pthread_mutexattr_t attr;
	int memfd = memfd_create("shared", MFD_CLOEXEC);

	shared =
		victim_map(sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
	MUST(!sem_init(&shared->lock, 1, 1));
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	MUST(!pthread_mutex_init(&shared->mutex, &attr));
	victim_fill(shared->pattern, sizeof(shared->pattern), 5);
	MUST(memfd >= 0 && !ftruncate(memfd, 64 * KIB));
	memfd_map = mmap(NULL, 64 * KIB, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	close(memfd);
	victim_fill(memfd_map, 64 * KIB, 6);
	unlinked = victim_file("gone", 64 * KIB, 7);
	unlink("gone");
	unlinked_map = mmap(NULL, 64 * KIB, PROT_READ | PROT_WRITE, MAP_SHARED, unlinked, 0);
	MUST(memfd_map != MAP_FAILED && unlinked_map != MAP_FAILED);
	file = open("file", O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0600);
	MUST(write(file, "0123456789", 10) == 10 && lseek(file, 4, SEEK_SET) == 4);
}

int main(void)
{
	prepare();
	child = tree_child(NULL, see_same);
	sleeper = tree_child(sleep_in_futex, woken);
	tree_await(2);
	victim_ready();
	victim_wait();
	pthread_mutex_lock(&shared->mutex);
	tree_open(2);
	usleep(1000);
	pthread_mutex_unlock(&shared->mutex);
	count();
	shared->futex = 1;
	syscall(SYS_futex, &shared->futex, FUTEX_WAKE, 9, NULL, NULL, 0);
	CHECK(tree_hear() == 'k' && tree_hear() == 'k', "a child");
	tree_reap(child, 0);
	tree_reap(sleeper, 0);
	CHECK(shared->counter == 2 * TURNS, "counted to %ld", shared->counter);
	CHECK(memfd_map[0] == 'c' && unlinked_map[0] == 'c', "no longer shared");
	CHECK(pread(unlinked, &(char){0}, 1, 0) == 1, "%s", strerror(errno));
	CHECK(lseek(file, 0, SEEK_CUR) == 7, "position %ld", (long)lseek(file, 0, SEEK_CUR));
	return victim_done();
}
