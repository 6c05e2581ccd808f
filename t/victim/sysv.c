/*
 * System V shared memory, semaphores and message queues between processes: contents, keys, ids,
 * owners; what is attached where, read-only, in part, twice, after its removal; what the end of
 * a process undoes.
 */
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

#include "tree.h"

#define SIZE (64 * KIB)

union semun {
	int val;
	unsigned short *array;
	struct semid_ds *buf;
};

struct message {
	long type;
	char text[6000];
};

static int keyed, removed, unattached, partly, sem, queue;
static int wide;       /* whose values leave little room for what is undone */
static int unwritable; /* a queue of a mode that lets nobody send to it any more */
static int awaited_sem, awaited_queue; /* that nobody has used yet, but waits for */
static key_t key;
static char *a, *twice, *read_only, *gone, *part;
static pid_t child;
static pthread_t waiting[2];

static int make_segment(key_t k, int seed)
{
	int id = shmget(k, SIZE, IPC_CREAT | IPC_EXCL | 0640);
	char *p;

	if (id < 0 && (errno == ENOSYS || errno == EPERM))
		victim_skip("no System V shared memory");
	MUST(id >= 0);
	p = shmat(id, NULL, 0);
	MUST(p != (void *)-1);
	victim_fill(p, SIZE, seed);
	shmdt(p);
	return id;
}

static void operate_on(int set, int n, int op, int flags)
{
	struct sembuf b = {n, op, flags};

	MUST(!semop(set, &b, 1));
}

static void operate(int n, int op, int flags)
{
	operate_on(sem, n, op, flags);
}

static void send(long type, size_t size, char fill)
{
	struct message m = {type};

	memset(m.text, fill, size);
	MUST(!msgsnd(queue, &m, size, IPC_NOWAIT));
}

static void set_room(unsigned long bytes)
{
	struct msqid_ds d;

	MUST(!msgctl(queue, IPC_STAT, &d));
	d.msg_qbytes = bytes;
	MUST(!msgctl(queue, IPC_SET, &d));
}

/* Mode bits that the kernel adds (SHM_LOCKED), before. */
static unsigned locked;

static void give_away(void)
{
	struct shmid_ds d;

	MUST(!shmctl(unattached, IPC_STAT, &d));
	d.shm_perm.uid = 12;
	d.shm_perm.gid = 13;
	MUST(!shmctl(unattached, IPC_SET, &d));
	(void)shmctl(unattached, SHM_LOCK, NULL); /* within limits */
	MUST(!shmctl(unattached, IPC_STAT, &d));
	locked = d.shm_perm.mode & SHM_LOCKED;
}

static void check_given_away(void)
{
	struct shmid_ds d;

	CHECK(!shmctl(unattached, IPC_STAT, &d) && (d.shm_perm.mode & SHM_LOCKED) == locked,
		"mode %o, locked %o", d.shm_perm.mode, locked);
	/* A restart by an ordinary user may be in a user namespace that has no user 12. */
	CHECK(geteuid() || (d.shm_perm.uid == 12 && d.shm_perm.gid == 13),
		"it belongs to %u, %u", d.shm_perm.uid, d.shm_perm.gid);
}

static void prepare(void)
{
	union semun u = {.array = (unsigned short[]){5, 0, 32767, 7}};

	key = 0x54520000 | (getpid() & 0xffff);
	keyed = make_segment(key, 1);
	removed = make_segment(IPC_PRIVATE, 2);
	unattached = make_segment(IPC_PRIVATE, 3);
	give_away();
	partly = make_segment(IPC_PRIVATE, 4);
	a = shmat(keyed, NULL, 0);
	twice = shmat(keyed, NULL, 0);
	read_only = shmat(keyed, NULL, SHM_RDONLY);
	gone = shmat(removed, NULL, 0);
	part = shmat(partly, NULL, 0);
	MUST(a != (void *)-1 && twice != (void *)-1 && read_only != (void *)-1 &&
		gone != (void *)-1 && part != (void *)-1);
	MUST(!shmctl(removed, IPC_RMID, NULL));
	/* A hole, in which something else is mapped, and a part of other permissions. */
	MUST(!munmap(part + 4 * 4096, 2 * 4096));
	MUST(mmap(part + 4 * 4096, 4096, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == part + 4 * 4096);
	part[4 * 4096] = 'h';
	MUST(!mprotect(part + 8 * 4096, 4096, PROT_READ));
	sem = semget(key, 4, IPC_CREAT | IPC_EXCL | 0600);
	MUST(sem >= 0 && !semctl(sem, 0, SETALL, u));
	operate(0, -2, SEM_UNDO);
	operate(3, 4, SEM_UNDO);
	wide = semget(IPC_PRIVATE, 4, 0600);
	u.array = (unsigned short[]){0, 25000, 0, 0};
	MUST(wide >= 0 && !semctl(wide, 0, SETALL, u));
	queue = msgget(key, IPC_CREAT | IPC_EXCL | 0620);
	set_room(10000);
	unwritable = msgget(IPC_PRIVATE, 0600);
	MUST(queue >= 0 && unwritable >= 0);
	send(3, 100, 'c');
	send(1, 6000, 'a');
	send(2, 0, 0);
	send(1, 7, 'b');
}

/* EINTR is no finding here, as a checkpoint whose system calls fail may leave one behind:
 * t/victim/blocked.c is where it would be one. */
static void *wait_for_semaphore(void *tid)
{
	struct sembuf b = {0, -1, 0};
	long r;

	*(_Atomic pid_t *)tid = victim_tid();
	do
		r = syscall(SYS_semop, awaited_sem, &b, 1);
	while (r < 0 && errno == EINTR);
	CHECK(!r, "a semaphore: %s", strerror(errno));
	return NULL;
}

static void *wait_for_message(void *tid)
{
	struct message m;
	ssize_t n;

	*(_Atomic pid_t *)tid = victim_tid();
	do
		n = msgrcv(awaited_queue, &m, sizeof(m.text), 5, 0);
	while (n < 0 && errno == EINTR);
	CHECK(n == 3 && !memcmp(m.text, "yes", 3), "%zd bytes: %s", n, strerror(errno));
	return NULL;
}

static void prepare_awaited(void)
{
	static _Atomic pid_t tids[2];
	FILE *f;

	awaited_sem = semget(IPC_PRIVATE, 1, 0600);
	awaited_queue = msgget(IPC_PRIVATE, 0600);
	MUST(awaited_sem >= 0 && awaited_queue >= 0);
	/* For who cleans up: a restart in a namespace of its own leaves it (t/ipc.t). */
	f = fopen("awaited", "w");
	MUST(f && fprintf(f, "%d\n", awaited_queue) > 0 && !fclose(f));
	waiting[0] = victim_thread(wait_for_semaphore, &tids[0]);
	waiting[1] = victim_thread(wait_for_message, &tids[1]);
	for (int i = 0; i < 2; i++) {
		while (!tids[i])
			sched_yield();
		victim_until_blocked(tids[i], i ? SYS_msgrcv : SYS_semop);
	}
}

static void check_awaited(void)
{
	struct message m = {5, "yes"};
	struct sembuf b = {0, 1, 0};

	CHECK(!semop(awaited_sem, &b, 1), "semaphores that are waited for: %s",
		strerror(errno));
	CHECK(!msgsnd(awaited_queue, &m, 3, 0), "a queue that is waited for: %s",
		strerror(errno));
	for (int i = 0; i < 2; i++)
		pthread_join(waiting[i], NULL);
}

static void child_prepare(void)
{
	operate(0, -1, SEM_UNDO);
	operate(1, 9, SEM_UNDO);
	operate(1, -8, 0);
	operate_on(wide, 0, 7300, SEM_UNDO);
	operate_on(wide, 0, 25400, 0);
	operate_on(wide, 1, -25000, SEM_UNDO);
	operate_on(wide, 1, 20000, 0);
	operate_on(wide, 2, 25000, SEM_UNDO);
	operate_on(wide, 2, -5000, 0);
	operate_on(wide, 3, 32767, SEM_UNDO);
	operate_on(wide, 3, -32667, 0);
}

static void child_check(void)
{
	SAME(a, 8, 9, "what the parent wrote");
	gone[0] = 'g';
}

static void receive(long type, size_t size, char fill)
{
	struct message m = {0};
	ssize_t n = msgrcv(queue, &m, sizeof(m.text), 0, IPC_NOWAIT);

	CHECK(n == (ssize_t)size && m.type == type && (!n || m.text[n - 1] == fill),
		"message of %zd bytes, type %ld", n, m.type);
}

static void check_segments(void)
{
	struct victim_vma v = {0};
	struct shmid_ds d;
	char *p;

	SAME(a, SIZE, 1, "attached");
	SAME(read_only, SIZE, 1, "attached for reading");
	SAME(gone, SIZE, 2, "removed");
	SAME(part, 4 * 4096, 4, "attached in part");
	CHECK(victim_vma(part + 8 * 4096, &v) && !strcmp(v.prot, "r--s"), "a part is %s",
		v.prot);
	check_given_away();
	CHECK(mprotect(read_only, 4096, PROT_READ | PROT_WRITE) && errno == EACCES,
		"what is attached for reading can be written");
	CHECK(part[4 * 4096] == 'h', "what is mapped in a segment's hole");
	CHECK(shmget(key, 0, 0) == keyed, "id %d was %d", shmget(key, 0, 0), keyed);
	CHECK(!shmctl(keyed, IPC_STAT, &d) && (d.shm_perm.mode & 0777) == 0640 &&
			d.shm_perm.uid == getuid() && d.shm_segsz == SIZE && d.shm_nattch == 6,
		"mode %o, %lu times attached", d.shm_perm.mode, (long)d.shm_nattch);
	CHECK(!shmctl(removed, IPC_STAT, &d) && d.shm_perm.mode & SHM_DEST && d.shm_nattch == 2,
		"removed: %s", strerror(errno));
	p = shmat(unattached, NULL, 0);
	CHECK(p != (void *)-1, "%s", strerror(errno));
	if (p != (void *)-1)
		SAME(p, SIZE, 3, "not attached");
	p = shmat(partly, NULL, 0);
	if (p != (void *)-1)
		SAME(p, SIZE, 4, "attached in part, all of it");
	victim_fill(twice, 8, 9);
	SAME(a, 8, 9, "through another mapping");
}

static void check_semaphores(void)
{
	static const unsigned short before[4] = {32700, 20000, 20000, 100},
				    after[4] = {25400, 25000, 7767, 0};
	unsigned short now[4], far[4];
	union semun u = {.array = now};

	CHECK(semget(key, 0, 0) == sem, "semaphores have another id");
	CHECK(!semctl(sem, 0, GETALL, u) && now[0] == 2 && now[1] == 1 && now[2] == 32767 &&
			now[3] == 11,
		"values %d %d %d %d", now[0], now[1], now[2], now[3]);
	u.array = far;
	CHECK(!semctl(wide, 0, GETALL, u) && !memcmp(far, before, sizeof(far)),
		"far values %d %d %d %d", far[0], far[1], far[2], far[3]);
	/* So that all that is undone has room. */
	operate_on(wide, 1, -20000, 0);
	operate_on(wide, 2, 12767, 0);
	operate_on(wide, 3, 32667, 0);
	tree_open(1);
	CHECK(tree_hear() == 'k', "the child");
	tree_reap(child, 0);
	CHECK(!semctl(wide, 0, GETALL, u) && !memcmp(far, after, sizeof(far)),
		"far ones, undone: %d %d %d %d", far[0], far[1], far[2], far[3]);
	u.array = now;
	/* The child's end gives back one, and takes what it can of nine. */
	CHECK(!semctl(sem, 0, GETALL, u) && now[0] == 3 && now[1] == 0, "undone: %d %d", now[0],
		now[1]);
	if (!fork()) {
		/* It has nothing to undo, having inherited nothing. */
		_exit(0);
	}
	wait(NULL);
	CHECK(!semctl(sem, 0, GETALL, u) && now[0] == 3 && now[3] == 11, "%d %d", now[0],
		now[3]);
}

static void make_unwritable(void)
{
	struct msqid_ds d;

	MUST(!msgsnd(unwritable, &(struct {
		long type;
		char text[4];
	}){9, "old"},
		4, 0));
	MUST(!msgctl(unwritable, IPC_STAT, &d));
	d.msg_perm.mode = 0400;
	MUST(!msgctl(unwritable, IPC_SET, &d));
}

static void check_unwritable(void)
{
	struct {
		long type;
		char text[8];
	} m = {0};
	struct msqid_ds d;

	CHECK(!msgctl(unwritable, IPC_STAT, &d) && (d.msg_perm.mode & 0777) == 0400 &&
			d.msg_qnum == 1,
		"%lu messages", (long)d.msg_qnum);
	CHECK(msgrcv(unwritable, &m, sizeof(m.text), 0, IPC_NOWAIT) == 4 && m.type == 9 &&
			!strcmp(m.text, "old"),
		"type %ld, '%s'", m.type, m.text);
}

static void check_queue(void)
{
	struct msqid_ds d;

	CHECK(msgget(key, 0) == queue, "the queue has another id");
	CHECK(!msgctl(queue, IPC_STAT, &d) && (d.msg_perm.mode & 0777) == 0620 &&
			d.msg_qnum == 4 && d.msg_qbytes == 10000,
		"%lu messages, room for %lu bytes", (long)d.msg_qnum, (long)d.msg_qbytes);
	receive(3, 100, 'c');
	receive(1, 6000, 'a');
	receive(2, 0, 0);
	receive(1, 7, 'b');
}

void victim_hurt(void)
{
	operate(2, -1, 0);
}

int main(void)
{
	prepare();
	child = tree_child(child_prepare, child_check);
	tree_await(1);
	prepare_awaited();
	make_unwritable();
	victim_ready();
	victim_wait();
	check_segments();
	check_semaphores();
	CHECK(gone[0] == 'g', "removed memory is no longer shared");
	check_queue();
	check_unwritable();
	check_awaited();
	shmctl(keyed, IPC_RMID, NULL);
	shmctl(unattached, IPC_RMID, NULL);
	shmctl(partly, IPC_RMID, NULL);
	semctl(sem, 0, IPC_RMID);
	semctl(wide, 0, IPC_RMID);
	msgctl(queue, IPC_RMID, NULL);
	msgctl(unwritable, IPC_RMID, NULL);
	semctl(awaited_sem, 0, IPC_RMID);
	msgctl(awaited_queue, IPC_RMID, NULL);
	return victim_done();
}
