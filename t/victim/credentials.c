/* Capabilities, groups and securebits of a program that was started by root and has given
 * part of that away. */
#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>

#include "victim.h"

static uint32_t was_caps[6], is_caps[6];

void victim_hurt(void)
{
	prctl(PR_CAPBSET_DROP, CAP_SYS_BOOT, 0, 0, 0);
}

static void look_at_caps(uint32_t *caps)
{
	struct {
		uint32_t version;
		int pid;
	} head = {_LINUX_CAPABILITY_VERSION_3, 0};

	MUST(!syscall(SYS_capget, &head, caps));
}

int main(void)
{
	struct {
		uint32_t version;
		int pid;
	} head = {_LINUX_CAPABILITY_VERSION_3, 0};
	gid_t groups[] = {1000, 2000, 3000}, now[16];
	uint64_t bounding = 0, after = 0;
	int n;

	if (geteuid())
		victim_skip("needs root");
	MUST(!setgroups(3, groups));
	MUST(!prctl(PR_CAPBSET_DROP, CAP_SYS_TIME, 0, 0, 0));
	look_at_caps(was_caps);
	was_caps[0] &= ~(1u << CAP_NET_RAW);
	was_caps[1] &= ~(1u << CAP_MKNOD);
	was_caps[0] &= was_caps[1];
	was_caps[2] = 1u << CAP_CHOWN;
	MUST(!syscall(SYS_capset, &head, was_caps));
	look_at_caps(was_caps);
	for (int i = 0; i < 41; i++)
		bounding |= (uint64_t)(prctl(PR_CAPBSET_READ, i, 0, 0, 0) == 1) << i;
	victim_ready();
	victim_wait();
	look_at_caps(is_caps);
	for (int i = 0; i < 6; i++)
		CHECK(is_caps[i] == was_caps[i], "capabilities, word %d: %x, was %x", i,
			is_caps[i], was_caps[i]);
	for (int i = 0; i < 41; i++)
		after |= (uint64_t)(prctl(PR_CAPBSET_READ, i, 0, 0, 0) == 1) << i;
	CHECK(after == bounding, "bounding set %llx, was %llx", (long long)after,
		(long long)bounding);
	n = getgroups(16, now);
	CHECK(n == 3 && !memcmp(now, groups, sizeof(groups)), "%d groups", n);
	return victim_done();
}
