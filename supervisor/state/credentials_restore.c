/*
 * Who a thread is: users, groups, capabilities, secure bits, into the plan of a new process.
 */
#include <limits.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/util.h"
#include "supervisor/state/restore_plan.h"

/* Capabilities that a new process has from us. */
static bool has_groups(const uint32_t *groups, size_t count)
{
	cleanup_free gid_t *mine = xcalloc(NGROUPS_MAX, sizeof(*mine));
	int n = getgroups(NGROUPS_MAX, mine);

	return n >= 0 && (size_t)n == count &&
	       (!count || !memcmp(mine, groups, count * sizeof(*groups)));
}

/* Not set if they are the same: in a user namespace that was made without privilege nobody may,
 * not even its root (man 7 user_namespaces). */
static void add_groups(struct restore_plan *p, struct batch_builder *b)
{
	const uint32_t *groups;
	size_t count;

	groups = image_note_array(p->img, IMAGE_NOTE_GROUPS, uint32_t, &count);
	if (!has_groups(groups, count))
		BATCH_ADD(b, "set the groups", SYS_setgroups, count,
			plan_data(&p->plan, groups, count * sizeof(*groups)));
}

/* A namespace begins with all of them; else the process has ours, and where we lack CAP_SETPCAP none can be dropped.
 * What is unknown to this kernel is not held either. */
static void add_bounds(struct batch_builder *b, const struct image_process *ip)
{
	for (int cap = 0; cap <= CAP_LAST_CAP; cap++) {
		struct batch_call *c;

		if (ip->cap_bounding >> cap & 1)
			continue;
		c = BATCH_ADD(b, "bound the capabilities (CAP_SETPCAP)", SYS_prctl,
			PR_CAPBSET_DROP, cap);
		if (prctl(PR_CAPBSET_READ, cap) != 1)
			c->check = BATCH_ANY;
	}
}

static struct batch_call *add_capabilities(struct restore_plan *p, struct batch_builder *b,
	uint64_t effective, uint64_t permitted, uint64_t inheritable)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct caps[2] = {
		{effective, permitted, inheritable},
		{effective >> 32, permitted >> 32, inheritable >> 32},
	};

	return BATCH_ADD(b, "set the capabilities", SYS_capset,
		plan_data(&p->plan, &header, sizeof(header)),
		plan_data(&p->plan, caps, sizeof(caps)));
}

static void add_securebits(struct batch_builder *b, uint32_t bits)
{
	/* This change takes no privilege. */
	if (!(bits & ~(uint32_t)SECBIT_KEEP_CAPS))
		BATCH_ADD(b, "keep capabilities", SYS_prctl, PR_SET_KEEPCAPS, !!bits);
	else
		BATCH_ADD(b, "set the secure bits", SYS_prctl, PR_SET_SECUREBITS, bits);
}

/* These calls report no error (man 2 setfsuid), but with an invalid id what is in force. */
static void add_file_system_id(struct batch_builder *b, long nr, uint32_t id)
{
	struct batch_call *c;

	BATCH_ADD(b, "set the file system's user or group", nr, id);
	c = BATCH_ADD(b, "set the file system's user or group", nr, -1);
	c->check = BATCH_EQUALS;
	c->expect = id;
}

/* A change of user takes the effective capabilities: CAP_SETPCAP is wanted a while longer.
 * Ambient ones are raised before a secure bit forbids it, inheritable ones before they are
 * bounded. */
void restore_plan_credentials(struct restore_plan *p, struct batch_builder *b)
{
	const struct image_process *ip = p->ip;
	bool other_user = ip->uid[3] != ip->uid[1], other_group = ip->gid[3] != ip->gid[1];
	uint64_t meanwhile = ip->cap_permitted | 1ull << CAP_SETPCAP;

	if (other_user)
		meanwhile |= 1ull << CAP_SETUID;
	if (!geteuid()) {
		add_groups(p, b);
		BATCH_ADD(b, "keep capabilities", SYS_prctl, PR_SET_KEEPCAPS, 1);
		BATCH_ADD(b, "set the group id", SYS_setresgid, ip->gid[0], ip->gid[1],
			ip->gid[2]);
		if (other_group)
			add_file_system_id(b, SYS_setfsgid, ip->gid[3]);
		BATCH_ADD(b, "set the user id", SYS_setresuid, ip->uid[0], ip->uid[1],
			ip->uid[2]);
	}
	/* Where that is not allowed, what needs it says so. */
	add_capabilities(p, b, meanwhile, meanwhile, ip->cap_inheritable)->check = BATCH_ANY;
	if (other_user)
		add_file_system_id(b, SYS_setfsuid, ip->uid[3]);
	add_bounds(b, ip);
	for (int cap = 0; cap <= CAP_LAST_CAP; cap++)
		if (ip->cap_ambient >> cap & 1)
			BATCH_ADD(b, "set the ambient capabilities", SYS_prctl, PR_CAP_AMBIENT,
				PR_CAP_AMBIENT_RAISE, cap, 0, 0);
	add_securebits(b, ip->securebits);
	add_capabilities(p, b, ip->cap_effective, ip->cap_permitted, ip->cap_inheritable);
	if (ip->no_new_privs)
		BATCH_ADD(b, "set no_new_privs", SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}
/* Only root can be somebody else. */
int restore_check_credentials(const struct restore_plan *p, struct err *e)
{
	const struct image_process *ip = p->ip;
	const uint32_t *groups;
	cleanup_free gid_t *mine = xcalloc(NGROUPS_MAX, sizeof(*mine));
	size_t count;
	int n = getgroups(NGROUPS_MAX, mine);

	if (!geteuid())
		return 0;
	for (int i = 0; i < 4; i++)
		if (ip->uid[i] != getuid() || ip->gid[i] != getgid())
			return err_set(e, 0,
				"the program ran as user %u and group %u; only these and root "
				"can bring it back",
				ip->uid[i], ip->gid[i]);
	groups = image_note_array(p->img, IMAGE_NOTE_GROUPS, uint32_t, &count);
	for (size_t i = 0; i < count; i++) {
		bool member = false;

		for (int k = 0; k < n; k++)
			member |= mine[k] == groups[i];
		/* 65534 stands for ids that a user namespace does not know. */
		if (!member && groups[i] != 65534 && groups[i] != getgid())
			return err_set(e, 0,
				"the program was in group %u, which this user is not in",
				groups[i]);
	}
	return 0;
}
