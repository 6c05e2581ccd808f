/*
 * POSIX shared memory and a named semaphore: contents, mode and size, through mappings that
 * write, a mapping of a child that may only read, and a descriptor that was kept; and one that is not
 * mapped yet. With "spoil", they are written over once it has been told to continue, and the one that was not
 * mapped is removed, until it is ended.
 */
#include <semaphore.h>

#include "tree.h"

#define SIZE (256 * KIB)

static char name[40], path[60], semaphore_name[48];
static char *memory, *reader;
static sem_t *semaphore;
static char new_name[48];
static int fd, new_fd;

static void look_at_it(void)
{
	int own = shm_open(name, O_RDONLY, 0);

	MUST(own >= 0);
	reader = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, own, 0);
	MUST(reader != MAP_FAILED);
	close(own);
}

static void check_child(void)
{
	SAME(reader, SIZE, 1, "what a child that only reads sees");
	CHECK(mprotect(reader, 4096, PROT_READ | PROT_WRITE) && errno == EACCES,
		"it may write by now");
	CHECK(!sem_post(semaphore), "%s", strerror(errno));
}

void victim_hurt(void)
{
	memory[SIZE - 1] ^= 1;
}

/* The program runs on after the checkpoint; a restart must not bring this back. */
static void spoil(void)
{
	memset(memory, 0xee, SIZE);
	MUST(!ftruncate(fd, SIZE + 4096) && !fchmod(fd, 0600) && !sem_post(semaphore));
	MUST(!shm_unlink(new_name));
	victim_say("spoilt");
	for (;;)
		pause();
}

static void make_objects(void)
{
	snprintf(name, sizeof(name), "/trecr-victim-%d", getpid());
	snprintf(semaphore_name, sizeof(semaphore_name), "%s-s", name);
	snprintf(path, sizeof(path), "/dev/shm%s", name);
	fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
	if (fd < 0)
		victim_skip("no POSIX shared memory");
	MUST(!ftruncate(fd, SIZE) && !fchmod(fd, 0640) && (geteuid() || !fchown(fd, 0, 13)));
	memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	semaphore = sem_open(semaphore_name, O_CREAT | O_EXCL, 0600, 3);
	MUST(memory != MAP_FAILED && semaphore != SEM_FAILED);
	victim_fill(memory, SIZE, 1);
	snprintf(new_name, sizeof(new_name), "%s-new", name);
	new_fd = shm_open(new_name, O_RDWR | O_CREAT | O_EXCL, 0600);
	MUST(new_fd >= 0 && !ftruncate(new_fd, SIZE) &&
		pwrite(new_fd, memory, SIZE, 0) == (ssize_t)SIZE);
}

/* What its maker does next, in most programs. */
static void check_new(void)
{
	char *mapped = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, new_fd, 0);

	CHECK(mapped != MAP_FAILED, "%s", strerror(errno));
	if (mapped != MAP_FAILED)
		SAME(mapped, SIZE, 1, "what was not mapped");
	CHECK(!shm_unlink(new_name), "%s", strerror(errno));
}

int main(int argc, char **argv)
{
	struct stat st, named;
	pid_t child;
	int value;

	make_objects();
	child = tree_child(look_at_it, check_child);
	tree_await(1);
	victim_ready();
	victim_wait();
	if (argc > 1 && access("brought-back", F_OK))
		spoil();
	SAME(memory, SIZE, 1, "what is mapped");
	CHECK(!fstat(fd, &st) && (st.st_mode & 07777) == 0640 && st.st_size == (off_t)SIZE,
		"mode %o, %ld bytes", st.st_mode, (long)st.st_size);
	CHECK(geteuid() || st.st_gid == 13, "group %u", st.st_gid);
	CHECK(!stat(path, &named) && named.st_ino == st.st_ino, "its name leads elsewhere");
	tree_finish(1);
	tree_reap(child, 0);
	CHECK(!sem_getvalue(semaphore, &value) && value == 4, "semaphore is %d", value);
	check_new();
	memory[0] = 'x';
	CHECK(pread(fd, name, 1, 0) == 1 && name[0] == 'x', "memory and file are two");
	name[0] = '/';
	CHECK(!shm_unlink(name) && !sem_unlink(semaphore_name), "%s", strerror(errno));
	return victim_done();
}
