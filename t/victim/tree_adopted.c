/*
 * Orphans that a process of the tree has taken over (PR_SET_CHILD_SUBREAPER), from sessions and
 * groups in which it has never been; and the first of a group, which has left it.
 */
#include <sys/prctl.h>

#include "tree.h"

enum { DAEMON, IN_GROUP, OF_LEADER, DEEP, LEADER, OF_FORMER, MOVED, STAYED, ROLES };
enum { REAPER, FORMER, REAPERS };

static struct shared {
	struct {
		pid_t pid, ppid, pgid, sid;
	} role[ROLES];
	pid_t zombie;
	int reaper_is[REAPERS];
} * shared;
static int role;
static pid_t reaper, group_of; /* as expected */
static pid_t root_session;     /* where it is the supervisor's, it may change */

void victim_hurt(void)
{
	setpgid(shared->role[STAYED].pid, getpgrp());
}

/* When it is where it belongs. */
static void note(void)
{
	while (reaper && getppid() != reaper)
		usleep(500);
	shared->role[role].ppid = getppid();
	shared->role[role].pgid = getpgrp();
	shared->role[role].sid = getsid(0);
	shared->role[role].pid = getpid();
}

static void same(void)
{
	pid_t sid = shared->role[role].sid;

	if (sid == root_session)
		sid = getsid(tree_root);
	CHECK(getppid() == shared->role[role].ppid, "role %d: parent was %d, is %d", role,
		shared->role[role].ppid, getppid());
	CHECK(getpgrp() == shared->role[role].pgid, "role %d: group was %d, is %d", role,
		shared->role[role].pgid, getpgrp());
	CHECK(getsid(0) == sid, "role %d: session was %d, is %d", role, sid, getsid(0));
}

static void become(int number, pid_t parent)
{
	role = number;
	reaper = parent;
	tree_child(note, same);
}

static void await_role(int number)
{
	while (!*(volatile pid_t *)&shared->role[number].pid)
		usleep(500);
}

/* Runs @make in a session of its own, whose first process ends. */
static void in_ended_session(void (*make)(pid_t parent))
{
	pid_t parent = getpid(), pid = fork();

	MUST(pid >= 0);
	if (!pid) {
		MUST(setsid() == getpid());
		make(parent);
		_exit(0);
	}
	MUST(waitpid(pid, NULL, 0) == pid);
}

static void own_group(void)
{
	MUST(!setpgid(0, 0));
	note();
}

static void make_daemons(pid_t parent)
{
	pid_t zombie;

	become(DAEMON, parent);
	role = IN_GROUP;
	reaper = parent;
	tree_child(own_group, same);
	zombie = fork();
	if (!zombie)
		_exit(7);
	shared->zombie = zombie;
}

static void make_former(pid_t parent)
{
	become(OF_FORMER, parent);
}

/* Its child's child, and one further down, become the reaper's. */
static void leader(void)
{
	pid_t parent = getppid(), pid;

	MUST(setsid() == getpid());
	pid = fork();
	MUST(pid >= 0);
	if (!pid) {
		become(OF_LEADER, parent);
		pid = fork();
		if (!pid) {
			become(DEEP, parent);
			_exit(0);
		}
		MUST(waitpid(pid, NULL, 0) == pid);
		_exit(0);
	}
	MUST(waitpid(pid, NULL, 0) == pid);
	role = LEADER;
	reaper = 0;
	note();
}

static void await_zombie(void)
{
	siginfo_t info;

	while (waitid(P_PID, shared->zombie, &info, WEXITED | WNOWAIT))
		usleep(500);
}

/* Those, in any order, and nobody else. They have to see their parent until they end. */
static void wait_for_roles(int first, int last)
{
	int count = 0, i;
	pid_t pid;

	while ((pid = wait(NULL)) > 0) {
		for (i = first; i <= last && shared->role[i].pid != pid; i++)
			;
		CHECK(i <= last, "process %d has ended", pid);
		count++;
	}
	CHECK(count == last - first + 1, "%d children", count);
}

static void check_reaper(void)
{
	siginfo_t info = {0};
	int is = -1;

	CHECK(!prctl(PR_GET_CHILD_SUBREAPER, &is) && is == shared->reaper_is[REAPER],
		"the reaper's setting is %d", is);
	CHECK(!waitid(P_PID, shared->zombie, &info, WEXITED) && info.si_status == 7,
		"the zombie ended with %d", info.si_status);
	wait_for_roles(DAEMON, LEADER);
}

static void be_reaper(void)
{
	MUST(!prctl(PR_SET_CHILD_SUBREAPER, 1));
	shared->reaper_is[REAPER] = 1;
	in_ended_session(make_daemons);
	await_zombie();
	tree_child(leader, same);
	for (int i = DAEMON; i <= LEADER; i++)
		await_role(i);
}

static void check_former(void)
{
	int is = -1;

	CHECK(!prctl(PR_GET_CHILD_SUBREAPER, &is) && !is, "the former's setting is %d", is);
	wait_for_roles(OF_FORMER, OF_FORMER);
}

static void be_former(void)
{
	MUST(!prctl(PR_SET_CHILD_SUBREAPER, 1));
	in_ended_session(make_former);
	await_role(OF_FORMER);
	MUST(!prctl(PR_SET_CHILD_SUBREAPER, 0));
}

static void moved(void)
{
	MUST(!setpgid(0, 0));
	shared->role[MOVED].pid = getpid();
	await_role(STAYED);
	MUST(!setpgid(0, group_of));
	role = MOVED;
	note();
}

static void stayed(void)
{
	await_role(MOVED);
	MUST(!setpgid(0, shared->role[MOVED].pid));
	role = STAYED;
	note();
}

int main(void)
{
	shared = victim_map(4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
	/* One of its own, as the supervisor's may be another after a restart. */
	MUST(setpgid(0, 0) == 0 || errno == EPERM);
	group_of = getpgrp();
	root_session = getsid(0);
	tree_child(be_reaper, check_reaper);
	tree_child(be_former, check_former);
	tree_child(moved, same);
	tree_child(stayed, same);
	tree_await(ROLES + REAPERS);
	victim_ready();
	victim_wait();
	tree_finish(ROLES + REAPERS);
	return victim_done();
}
