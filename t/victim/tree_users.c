/* Processes of several users. */
#include <grp.h>

#include "tree.h"

static void become_nobody(void)
{
	gid_t group = 65533;

	MUST(!setgroups(1, &group) && !setresgid(65534, 65534, 65534) &&
		!setresuid(65534, 65534, 65534));
}

static void still_nobody(void)
{
	uid_t r, e, s;
	gid_t group = 0;

	getresuid(&r, &e, &s);
	CHECK(r == 65534 && e == 65534 && s == 65534, "user %u %u %u", r, e, s);
	CHECK(getgid() == 65534 && getegid() == 65534, "group %u %u", getgid(), getegid());
	CHECK(getgroups(1, &group) == 1 && group == 65533, "supplementary group %u", group);
	CHECK(setuid(0) < 0, "can become root");
}

static pid_t child;

void victim_hurt(void)
{
	kill(child, SIGKILL);
	tree_tell('x');
}

int main(void)
{
	if (geteuid())
		victim_skip("root alone can have processes of several users");
	child = tree_child(become_nobody, still_nobody);
	tree_await(1);
	victim_ready();
	victim_wait();
	tree_finish(1);
	tree_reap(child, 0);
	CHECK(getuid() == 0, "user %u", getuid());
	return victim_done();
}
