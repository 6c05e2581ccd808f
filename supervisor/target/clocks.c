/*
 * The kernel counts what it shows and is given here from the clocks of the initial time
 * namespace, whose own shifts are 0 (proc_timens_set_offset(), kernel/time/namespace.c).
 */
#include "supervisor/target/clocks.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/util.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

#define NS_PER_S 1000000000ll

/* "monotonic  -5  250000000": the seconds have the sign. */
static int64_t read_line(const char *text, const char *name)
{
	const char *line = strstr(text, name);
	long long s = 0, ns = 0;

	if (line)
		sscanf(line + strlen(name), "%lld %lld", &s, &ns);
	return s * NS_PER_S + ns;
}

int clocks_of(pid_t pid, struct clock_shifts *out, struct err *e)
{
	cleanup_free char *path = xasprintf("/proc/%d/timens_offsets", pid);
	cleanup_free char *text = NULL;
	size_t len;

	memset(out, 0, sizeof(*out));
	if (access(path, F_OK) && errno == ENOENT)
		return 0;
	if (read_file(path, &text, &len, e))
		return -1;
	out->monotonic_ns = read_line(text, "monotonic");
	out->boottime_ns = read_line(text, "boottime");
	return 0;
}

int clocks_compare(pid_t pid, struct clock_shifts *out, struct err *e)
{
	struct clock_shifts mine;

	if (clocks_of(pid, out, e) || clocks_of(getpid(), &mine, e))
		return -1;
	out->monotonic_ns -= mine.monotonic_ns;
	out->boottime_ns -= mine.boottime_ns;
	return 0;
}

int64_t clocks_shift(const struct clock_shifts *s, clockid_t clock)
{
	switch (clock) {
	case CLOCK_MONOTONIC:
	case CLOCK_MONOTONIC_RAW:
	case CLOCK_MONOTONIC_COARSE:
		return s->monotonic_ns;
	case CLOCK_BOOTTIME:
	case CLOCK_BOOTTIME_ALARM:
		return s->boottime_ns;
	default:
		return 0;
	}
}

int clocks_plan(
	uint64_t monotonic_ns, uint64_t boottime_ns, struct clock_shifts *out, struct err *e)
{
	if (clocks_of(getpid(), out, e))
		return -1;
	out->monotonic_ns += (int64_t)(monotonic_ns - clock_ns(CLOCK_MONOTONIC));
	out->boottime_ns += (int64_t)(boottime_ns - clock_ns(CLOCK_BOOTTIME));
	return 0;
}

/* "c76b8ad5-4aba-4b63-ac5a-e5d7bd2fd0d9" */
void clocks_boot_id(uint8_t id[16])
{
	cleanup_free char *text = NULL;
	size_t len, digits = 0;

	memset(id, 0, 16);
	if (read_file("/proc/sys/kernel/random/boot_id", &text, &len, NULL))
		return;
	for (const char *p = text; *p && digits < 32; p++) {
		int digit = *p >= 'a' ? *p - 'a' + 10 : *p - '0';

		if (digit < 0 || digit > 15)
			continue;
		id[digits / 2] |= digit << (digits % 2 ? 0 : 4);
		digits++;
	}
}

static void add_line(struct buf *out, const char *name, int64_t shift)
{
	int64_t s = shift / NS_PER_S, ns = shift % NS_PER_S;

	if (ns < 0) {
		s--;
		ns += NS_PER_S;
	}
	buf_printf(out, "%s %" PRId64 " %" PRId64 "\n", name, s, ns);
}

/* Both in one write, as the kernel wants it: before the first process is in it. */
int clocks_set(const struct clock_shifts *s)
{
	cleanup_buf struct buf text = {0};
	cleanup_fd int fd = -1;

	add_line(&text, "monotonic", s->monotonic_ns);
	add_line(&text, "boottime", s->boottime_ns);
	if (unshare(CLONE_NEWTIME) < 0)
		return -1;
	fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
	return fd < 0 || write(fd, text.data, text.len) != (ssize_t)text.len ? -1 : 0;
}
