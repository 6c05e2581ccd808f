/*
 * Process groups and sessions: with their first process alive, ended, or moved on; made before
 * and after the parent founded its own.
 */
#include "tree.h"

enum { PLAIN, OWN_GROUP, JOINED, OWN_SESSION, IN_SESSION, LEFT_BEHIND, EARLY, DAEMON, ROLES };

static struct {
	pid_t pid, pgid, sid;
} * roles;
static int role;
static pid_t root_group, root_session; /* where they are the supervisor's, they may change */

static void note(int as)
{
	role = as;
	roles[as].pid = getpid();
	roles[as].pgid = getpgrp();
	roles[as].sid = getsid(0);
}

static void same_ids(void)
{
	pid_t pgid = roles[role].pgid, sid = roles[role].sid;

	if (pgid == root_group)
		pgid = getpgid(tree_root);
	if (sid == root_session)
		sid = getsid(tree_root);
	CHECK(getpgrp() == pgid, "role %d: group was %d, is %d", role, pgid, getpgrp());
	CHECK(getsid(0) == sid, "role %d: session was %d, is %d", role, sid, getsid(0));
}

static void plain(void)
{
	note(PLAIN);
}

static void own_group(void)
{
	MUST(!setpgid(0, 0));
	note(OWN_GROUP);
}

static void joined(void)
{
	while (setpgid(0, roles[OWN_GROUP].pid))
		usleep(500);
	note(JOINED);
}

static void in_session(void)
{
	MUST(!setpgid(0, 0));
	note(IN_SESSION);
}

static void early(void)
{
	note(EARLY);
}

static void own_session(void)
{
	tree_child(early, same_ids);
	MUST(setsid() == getpid());
	note(OWN_SESSION);
	tree_child(in_session, same_ids);
}

static void left_behind(void)
{
	note(LEFT_BEHIND);
}

static void daemon_child(void)
{
	note(DAEMON);
}

/* The first of a group and the first of a session, which end. */
static void make_and_end(void (*found)(void), void (*child)(void))
{
	pid_t pid = fork();

	MUST(pid >= 0);
	if (!pid) {
		found();
		tree_child(child, same_ids);
		_exit(0);
	}
	MUST(waitpid(pid, NULL, 0) == pid);
}

static void found_group(void)
{
	MUST(!setpgid(0, 0));
}

static void found_session(void)
{
	MUST(setsid() > 0);
}

void victim_hurt(void)
{
	setpgid(roles[OWN_GROUP].pid, getpgrp());
}

int main(void)
{
	roles = victim_map(4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
	root_group = getpgrp();
	root_session = getsid(0);
	tree_child(plain, same_ids);
	tree_child(own_group, same_ids);
	tree_child(joined, same_ids);
	tree_child(own_session, same_ids);
	make_and_end(found_group, left_behind);
	make_and_end(found_session, daemon_child);
	tree_await(ROLES);
	victim_ready();
	victim_wait();
	for (int i = 0; i < ROLES; i++)
		CHECK(!kill(roles[i].pid, 0), "role %d is gone", i);
	CHECK(!kill(-roles[LEFT_BEHIND].pgid, 0), "the group without its first is gone");
	tree_finish(ROLES);
	return victim_done();
}
