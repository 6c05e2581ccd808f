/*
 * Segments of System V shared memory whose modes would not let those attach them who have them: one that may only be read
 * by now, one that may not even be asked for, and, of root's, one that a process has kept when it became another user's.
 * One that may only be read is attached by nobody.
 */
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/wait.h>

#include "victim.h"

#define SIZE   (16 * KIB)
#define USER   12
#define MODES  2
#define SECRET MODES

static const mode_t modes[MODES] = {0400, 0};
static int ids[MODES + 1], asks[2], tells[2];
static char *memory[MODES + 1];
static int unattached;
static pid_t child;

void victim_hurt(void)
{
	memory[1][7]++;
}

static int attach(int i)
{
	ids[i] = shmget(IPC_PRIVATE, SIZE, IPC_CREAT | 0600);
	MUST(ids[i] >= 0);
	memory[i] = shmat(ids[i], NULL, 0);
	MUST(memory[i] != (char *)-1);
	victim_fill(memory[i], SIZE, i + 1);
	return ids[i];
}

static void set_mode(int id, mode_t mode)
{
	struct shmid_ds d;

	MUST(!shmctl(id, IPC_STAT, &d));
	d.shm_perm.mode = mode;
	MUST(!shmctl(id, IPC_SET, &d));
}

/* Has root's segment as another user, who may not attach it again. */
static void keep_secret(void)
{
	char byte;

	for (int i = 0; i < MODES; i++)
		MUST(!shmdt(memory[i]));
	close(asks[1]);
	MUST(!setresgid(USER, USER, USER) && !setresuid(USER, USER, USER));
	MUST(shmat(ids[SECRET], NULL, 0) == (void *)-1);
	MUST(write(tells[1], "", 1) == 1);
	while (read(asks[0], &byte, 1) < 0)
		;
	SAME(memory[SECRET], SIZE, SECRET + 1, "root's segment");
	_exit(victim_failures != 0);
}

static void make_child(void)
{
	char byte;

	attach(SECRET);
	MUST(!pipe(asks) && !pipe(tells));
	child = fork();
	MUST(child >= 0);
	if (!child)
		keep_secret();
	close(asks[0]);
	MUST(read(tells[0], &byte, 1) == 1);
	MUST(!shmdt(memory[SECRET])); /* or we would be asked about it */
}

static void check_child(void)
{
	int status;

	CHECK(write(asks[1], "", 1) == 1 && waitpid(child, &status, 0) == child && !status,
		"the process of user %d ends with status 0x%x", USER, status);
	MUST(!shmctl(ids[SECRET], IPC_RMID, NULL));
}

static void check_mode(int id, mode_t mode)
{
	struct shmid_ds d;
	int index = id & 0x7fff;

	CHECK(shmctl(index, SHM_STAT_ANY, &d) == id, "segment %d is not there", id);
	CHECK((d.shm_perm.mode & 0777) == mode, "the mode of segment %d is %o", id,
		d.shm_perm.mode);
	CHECK(d.shm_perm.uid == geteuid(), "it belongs to %u", d.shm_perm.uid);
}

static void check_attached(int i)
{
	SAME(memory[i], SIZE, i + 1, "a segment");
	memory[i][SIZE - 1]++;
	check_mode(ids[i], modes[i]);
	MUST(!shmctl(ids[i], IPC_RMID, NULL));
}

static void make_unattached(void)
{
	char *p;

	unattached = shmget(IPC_PRIVATE, SIZE, IPC_CREAT | 0600);
	MUST(unattached >= 0);
	p = shmat(unattached, NULL, 0);
	MUST(p != (char *)-1);
	victim_fill(p, SIZE, MODES + 2);
	MUST(!shmdt(p));
	set_mode(unattached, 0400);
}

static void check_unattached(void)
{
	const char *p;

	check_mode(unattached, 0400);
	p = shmat(unattached, NULL, SHM_RDONLY);
	MUST(p != (char *)-1);
	SAME(p, SIZE, MODES + 2, "a segment that nobody has attached");
	MUST(!shmdt(p) && !shmctl(unattached, IPC_RMID, NULL));
}

int main(void)
{
	for (int i = 0; i < MODES; i++)
		set_mode(attach(i), modes[i]);
	make_unattached();
	if (!geteuid())
		make_child();
	victim_ready();
	victim_wait();
	for (int i = 0; i < MODES; i++)
		check_attached(i);
	check_unattached();
	if (child)
		check_child();
	return victim_done();
}
