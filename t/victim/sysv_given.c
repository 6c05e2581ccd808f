/* System V objects that now belong to another user; all of them are still there at a restart.
 */
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

#include "victim.h"

union semun {
	int val;
	struct semid_ds *buf;
};

static char *memory;
static int segment, set, queue;

void victim_hurt(void)
{
	memory[0]++;
}

static void give_away(void)
{
	struct shmid_ds shm;
	struct semid_ds sem;
	struct msqid_ds msg;

	MUST(!shmctl(segment, IPC_STAT, &shm));
	shm.shm_perm.uid = 12;
	MUST(!shmctl(segment, IPC_SET, &shm));
	MUST(!semctl(set, 0, IPC_STAT, (union semun){.buf = &sem}));
	sem.sem_perm.uid = 12;
	MUST(!semctl(set, 0, IPC_SET, (union semun){.buf = &sem}));
	MUST(!msgctl(queue, IPC_STAT, &msg));
	msg.msg_perm.uid = 12;
	MUST(!msgctl(queue, IPC_SET, &msg));
}

static void remove_all(void)
{
	MUST(!shmctl(segment, IPC_RMID, NULL));
	MUST(!semctl(set, 0, IPC_RMID));
	MUST(!msgctl(queue, IPC_RMID, NULL));
}

int main(void)
{
	struct {
		long type;
		char text[4];
	} message = {3, "abc"};
	struct shmid_ds shm;

	segment = shmget(IPC_PRIVATE, 64 * KIB, IPC_CREAT | 0600);
	set = semget(IPC_PRIVATE, 1, IPC_CREAT | 0600);
	queue = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
	MUST(segment >= 0 && set >= 0 && queue >= 0);
	memory = shmat(segment, NULL, 0);
	MUST(memory != (char *)-1);
	victim_fill(memory, 64 * KIB, 1);
	MUST(!semop(set, &(struct sembuf){.sem_op = 7}, 1));
	MUST(!msgsnd(queue, &message, sizeof(message.text), 0));
	give_away();
	victim_ready();
	victim_wait();
	SAME(memory, 64 * KIB, 1, "shared memory");
	CHECK(semctl(set, 0, GETVAL) == 7, "a semaphore is %d", semctl(set, 0, GETVAL));
	memset(&message, 0, sizeof(message));
	CHECK(msgrcv(queue, &message, sizeof(message.text), 0, IPC_NOWAIT) == 4 &&
			!strcmp(message.text, "abc"),
		"a message is '%.4s'", message.text);
	/* A restart by an ordinary user may be in a user namespace that has no user 12. */
	CHECK(!shmctl(segment, IPC_STAT, &shm) && (geteuid() || shm.shm_perm.uid == 12),
		"it belongs to %u", shm.shm_perm.uid);
	remove_all();
	return victim_done();
}
