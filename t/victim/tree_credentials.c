/*
 * Processes of several users, groups and capabilities: what /proc shows of each, its secure
 * bits, and whether others may look at it, are as they were. As an ordinary user, only such as that user
 * can have.
 */
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>

#include "tree.h"

#define MOST 10

/* Of the lines of /proc/PID/status that are about credentials, and what only the process itself
 * can ask for. */
static struct seen {
	char text[1024];
	int securebits, dumpable;
} * before;
static int number;

static void look_at_credentials(struct seen *s)
{
	static const char *const keys[] = {"Uid:", "Gid:", "Groups:", "CapInh:", "CapPrm:",
		"CapEff:", "CapBnd:", "CapAmb:", "NoNewPrivs:"};
	char line[256];
	FILE *f = fopen("/proc/thread-self/status", "re");

	memset(s, 0, sizeof(*s));
	/* The file of a process that may not be looked at is root's. */
	while (f && fgets(line, sizeof(line), f))
		for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
			if (!strncmp(line, keys[i], strlen(keys[i])))
				strcat(s->text, line);
	if (f)
		fclose(f);
	s->securebits = prctl(PR_GET_SECUREBITS);
	s->dumpable = prctl(PR_GET_DUMPABLE);
}

static void set_caps(uint64_t effective, uint64_t permitted, uint64_t inheritable)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct caps[2] = {
		{effective, permitted, inheritable},
		{effective >> 32, permitted >> 32, inheritable >> 32},
	};

	MUST(!syscall(SYS_capset, &head, caps));
}

static void an_ordinary_user(void)
{
	gid_t groups[] = {100, 5000};

	MUST(!setgroups(2, groups) && !setresgid(1001, 1002, 1003) &&
		!setresuid(1001, 1001, 1001) && !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
}

static void three_users(void)
{
	MUST(!setgroups(0, NULL) && !setresgid(7, 8, 9) && !setresuid(1004, 1005, 1006) &&
		!prctl(PR_SET_DUMPABLE, 1));
}

static void root_for_later(void)
{
	MUST(!setresuid(0, 1007, 0));
}

static void a_user_with_capabilities(void)
{
	uint64_t caps = 1u << CAP_CHOWN | 1u << CAP_KILL;

	MUST(!prctl(PR_SET_KEEPCAPS, 1) && !setresuid(1008, 1008, 1008));
	set_caps(1u << CAP_KILL, caps, caps);
	MUST(!prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_KILL, 0, 0));
}

static void root_with_less(void)
{
	uint64_t caps = 1u << CAP_SETPCAP | 1u << CAP_CHOWN | 1u << CAP_SETUID;

	MUST(!prctl(PR_CAPBSET_DROP, CAP_SYS_BOOT, 0, 0, 0));
	MUST(!prctl(PR_SET_SECUREBITS,
		SECBIT_NOROOT | SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED));
	set_caps(caps, caps, 0);
	MUST(!prctl(PR_SET_DUMPABLE, 0));
}

static void no_new_privileges(void)
{
	MUST(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
}

static void keeps_capabilities(void)
{
	MUST(!prctl(PR_SET_KEEPCAPS, 1));
}

/* As file servers do, for a user at a time. */
static void root_for_others(void)
{
	setfsgid(1010);
	setfsuid(1011);
}

static void users_for_others(void)
{
	MUST(!setresgid(7, 8, 9));
	setfsgid(1012);
	MUST(!prctl(PR_SET_KEEPCAPS, 1) && !setresuid(1004, 1005, 1006));
	setfsuid(1004);
	set_caps(0, 1u << CAP_CHOWN, 0);
}

static void (*const of_root[])(void) = {an_ordinary_user, three_users, root_for_later,
	a_user_with_capabilities, root_with_less, no_new_privileges, root_for_others,
	users_for_others, NULL};
static void (*const of_users[])(void) = {no_new_privileges, keeps_capabilities, NULL};

static void (*become)(void);

static void prepare(void)
{
	become();
	look_at_credentials(&before[number]);
}

static void check_credentials(void)
{
	struct seen now;

	look_at_credentials(&now);
	CHECK(!strcmp(now.text, before[number].text), "child %d was\n%sis\n%s", number,
		before[number].text, now.text);
	CHECK(now.securebits == before[number].securebits, "child %d: securebits %x, were %x",
		number, now.securebits, before[number].securebits);
	CHECK(now.dumpable == before[number].dumpable, "child %d: dumpable %d, was %d", number,
		now.dumpable, before[number].dumpable);
}

void victim_hurt(void)
{
	strcpy(before[1].text, "nothing");
}

int main(void)
{
	void (*const *list)(void) = geteuid() ? of_users : of_root;

	before = victim_map(
		sizeof(*before) * MOST, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
	for (; list[number]; number++) {
		become = list[number];
		tree_child(prepare, check_credentials);
	}
	tree_await(number);
	look_at_credentials(&before[number]);
	victim_ready();
	victim_wait();
	check_credentials();
	tree_finish(number);
	return victim_done();
}
