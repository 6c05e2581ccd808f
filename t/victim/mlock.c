/* mlock and mlock2(MLOCK_ONFAULT) of single mappings, one of a file that has become shorter; more is not
 * allowed any more. */
#include <sys/resource.h>

#include "victim.h"

static char *locked, *onfault, *cut;

void victim_hurt(void)
{
	munlock(locked, 64 * KIB);
}

/* Behind the end of the file nothing can be locked, which is reported. */
static void prepare_cut(void)
{
	int fd = open("cut", O_RDWR | O_CREAT | O_TRUNC, 0600);

	MUST(fd >= 0 && !ftruncate(fd, 64 * KIB));
	cut = mmap(NULL, 64 * KIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	MUST(cut != MAP_FAILED && !ftruncate(fd, 4 * KIB) && !close(fd));
	cut[0] = 1;
	MUST(mlock(cut, 64 * KIB) && victim_vmflag(cut, "lo"));
}

int main(void)
{
	const struct rlimit none = {0, 0};
	struct victim_vma v;
	struct rlimit limit;

	locked = victim_anon(64 * KIB);
	onfault = victim_anon(64 * KIB);
	victim_fill(locked, 64 * KIB, 1);
	if (mlock(locked, 64 * KIB))
		victim_skip("memory cannot be locked here");
	MUST(!mlock2(onfault, 64 * KIB, MLOCK_ONFAULT));
	onfault[0] = 1;
	prepare_cut();
	MUST(!setrlimit(RLIMIT_MEMLOCK, &none));
	victim_ready();
	victim_wait();
	SAME(locked, 64 * KIB, 1, "locked memory");
	CHECK(victim_vma(locked, &v) && strstr(v.flags, " lo "), "flags are %s", v.flags);
	CHECK(v.locked_kb == 64, "%lu KiB are locked", v.locked_kb);
	CHECK(victim_vma(onfault, &v) && strstr(v.flags, " lo "), "flags are %s", v.flags);
	CHECK(v.locked_kb < 64, "MLOCK_ONFAULT has become mlock: %lu KiB", v.locked_kb);
	CHECK(victim_vma(cut, &v) && strstr(v.flags, " lo "), "flags are %s", v.flags);
	CHECK(v.locked_kb == 4, "%lu KiB of the file are locked", v.locked_kb);
	CHECK(!getrlimit(RLIMIT_MEMLOCK, &limit) && !limit.rlim_max, "the limit is %llu",
		(long long)limit.rlim_max);
	CHECK(!munlock(locked, 64 * KIB) && !victim_vmflag(locked, "lo"), "cannot be unlocked");
	return victim_done();
}
