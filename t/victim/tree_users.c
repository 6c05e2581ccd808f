/* Processes of several users. */
#include <grp.h>
#include <sys/socket.h>

#include "tree.h"

/* Made by the user, who can open them again, as by /dev/stdin. */
static int ends[2], pair[2], memory, unlinked;

static void become_nobody(void)
{
	gid_t group = 65533;

	MUST(!setgroups(1, &group) && !setresgid(65534, 65534, 65534) &&
		!setresuid(65534, 65534, 65534));
	memory = memfd_create("its own", 0);
	MUST(!pipe(ends) && !socketpair(AF_UNIX, SOCK_STREAM, 0, pair) && memory >= 0 &&
		!fchmod(memory, 0600));
	unlinked = open("/tmp", O_TMPFILE | O_RDWR, 0600);
	MUST(unlinked >= 0);
}

static void check_owner(int fd, bool opens)
{
	char path[64];
	struct stat st;

	CHECK(!fstat(fd, &st) && st.st_uid == 65534 && st.st_gid == 65534,
		"descriptor %d belongs to %u, %u", fd, st.st_uid, st.st_gid);
	snprintf(path, sizeof(path), "/dev/fd/%d", fd);
	CHECK(!opens || open(path, O_RDONLY | O_NONBLOCK) >= 0, "%s: %s", path,
		strerror(errno));
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
	check_owner(ends[0], true);
	check_owner(pair[0], false);
	check_owner(memory, true);
	check_owner(unlinked, true);
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
