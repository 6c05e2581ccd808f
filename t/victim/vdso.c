/* The vdso is where the auxiliary vector says, and works without a system call. Time does
 * not go backwards. */
#include <elf.h>
#include <sys/auxv.h>

#include "victim.h"

static uint64_t monotonic, boot;

void victim_hurt(void)
{
	monotonic += 1000 * SEC;
}

static unsigned long mapped(const char *name)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	unsigned long at = 0;

	MUST(f);
	while (!at && fgets(line, sizeof(line), f))
		if (strstr(line, name))
			at = strtoul(line, NULL, 16);
	fclose(f);
	return at;
}

int main(void)
{
	unsigned long vdso = getauxval(AT_SYSINFO_EHDR), vvar = mapped("[vvar]");
	clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME,
		CLOCK_MONOTONIC_RAW, CLOCK_REALTIME_COARSE, CLOCK_MONOTONIC_COARSE};
	uint64_t real = victim_clock(CLOCK_REALTIME);
	uint64_t end;

	monotonic = victim_now();
	boot = victim_clock(CLOCK_BOOTTIME);
	victim_ready();
	victim_wait();
	CHECK(victim_now() >= monotonic, "CLOCK_MONOTONIC went back by %lld ns",
		(long long)(monotonic - victim_now()));
	CHECK(victim_clock(CLOCK_BOOTTIME) >= boot, "CLOCK_BOOTTIME went back");
	CHECK(victim_clock(CLOCK_REALTIME) + SEC >= real, "CLOCK_REALTIME went back");
	for (size_t i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++) {
		struct timespec a, b, c;
		int64_t apart, most;

		MUST(!clock_gettime(clocks[i], &a));
		MUST(!syscall(SYS_clock_gettime, clocks[i], &b));
		MUST(!clock_gettime(clocks[i], &c));
		apart = (b.tv_sec - a.tv_sec) * (int64_t)SEC + b.tv_nsec - a.tv_nsec;
		most = (c.tv_sec - a.tv_sec) * (int64_t)SEC + c.tv_nsec - a.tv_nsec;
		CHECK(apart >= 0 && apart <= most,
			"clock %d: the kernel's is %lld ns later than the vdso's", clocks[i],
			(long long)apart);
	}
	for (end = victim_now() + 20 * MSEC; monotonic < end;) {
		uint64_t t = victim_now();

		CHECK(t >= monotonic, "CLOCK_MONOTONIC went back");
		monotonic = t;
	}
	/* In the place of another kernel's is code that leads to this one's. */
	if (getenv("TRECR_TEST_OTHER_VDSO"))
		vdso = mapped("[vdso]"), vvar = mapped("[vvar]");
	else
		CHECK(getauxval(AT_SYSINFO_EHDR) == vdso, "the auxiliary vector has changed");
	CHECK(mapped("[vdso]") == vdso, "vdso is at %lx, the auxiliary vector says %lx",
		mapped("[vdso]"), vdso);
	CHECK(mapped("[vvar]") == vvar, "vvar is at %lx, was at %lx", mapped("[vvar]"), vvar);
	CHECK(!memcmp((void *)vdso, ELFMAG, SELFMAG), "no ELF header at the vdso");
	return victim_done();
}
