/* What /proc/meminfo and the files of control groups tell (proc(5), cgroups(7)). */
#include "supervisor/memory/memory_available.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/util.h"

/* The hierarchies of both versions, where they are mounted as a rule. */
static const struct {
	const char *line, *mount, *limit, *used;
} hierarchies[] = {
	{"0::/", "/sys/fs/cgroup", "memory.max", "memory.current"},
	{":memory:/", "/sys/fs/cgroup/memory", "memory.limit_in_bytes",
		"memory.usage_in_bytes"},
};

/* The number behind @key in a file of /proc or of a cgroup; false when there is none. */
static bool number_in(const char *path, const char *key, uint64_t *value)
{
	cleanup_free char *text = NULL;
	const char *at;
	size_t size;

	if (read_file(path, &text, &size, NULL))
		return false;
	at = strstr(text, key);
	return at && sscanf(at + strlen(key), "%" SCNu64, value) == 1;
}

static uint64_t machine_has(const char *key)
{
	uint64_t kib;

	return number_in("/proc/meminfo", key, &kib) ? kib << 10 : UINT64_MAX;
}

static uint64_t saturating_sum(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* What the cgroup @dir leaves. Files that were read and written count in it, and make room. */
static uint64_t group_left(const char *dir, size_t version)
{
	cleanup_free char *limit = xasprintf("%s/%s", dir, hierarchies[version].limit);
	cleanup_free char *used = xasprintf("%s/%s", dir, hierarchies[version].used);
	cleanup_free char *stat = xasprintf("%s/memory.stat", dir);
	uint64_t most, now, files = 0;

	if (!number_in(limit, "", &most) || !number_in(used, "", &now))
		return UINT64_MAX;
	(void)number_in(stat, "\ninactive_file ", &files); /* none are taken off then */
	now -= files < now ? files : now;
	return now < most ? most - now : 0;
}

static uint64_t group_limit(const char *dir, size_t version)
{
	cleanup_free char *limit = xasprintf("%s/%s", dir, hierarchies[version].limit);
	uint64_t most;

	return number_in(limit, "", &most) ? most : UINT64_MAX;
}

typedef uint64_t group_figure(const char *dir, size_t version);

/* The least that the cgroup @path (changed) and the cgroups above it have of @figure. */
static uint64_t least_of_branch(char *path, size_t mount, size_t version, group_figure *figure)
{
	uint64_t least = figure(path, version), other;

	while (strlen(path) > mount) {
		*strrchr(path, '/') = '\0';
		other = figure(path, version);
		least = other < least ? other : least;
	}
	return least;
}

static uint64_t least_of_groups(pid_t pid, group_figure *figure)
{
	cleanup_free char *list = xasprintf("/proc/%d/cgroup", pid), *text = NULL;
	uint64_t least = UINT64_MAX, other;
	size_t size;

	if (read_file(list, &text, &size, NULL))
		return least;
	for (size_t i = 0; i < ARRAY_SIZE(hierarchies); i++) {
		const char *mount = hierarchies[i].mount;
		const char *at = strstr(text, hierarchies[i].line);
		cleanup_free char *path = NULL;

		if (!at)
			continue;
		at += strlen(hierarchies[i].line) - 1;
		path = xasprintf("%s%.*s", mount, (int)strcspn(at, "\n"), at);
		other = least_of_branch(path, strlen(mount), i, figure);
		least = other < least ? other : least;
	}
	return least;
}

uint64_t memory_available_now(pid_t pid)
{
	uint64_t machine = machine_has("MemAvailable:");
	uint64_t groups = least_of_groups(pid, group_left);

	return machine < groups ? machine : groups;
}

uint64_t memory_available_machine(void)
{
	return saturating_sum(machine_has("MemTotal:"), machine_has("SwapTotal:"));
}

uint64_t memory_available_groups(pid_t pid)
{
	return saturating_sum(least_of_groups(pid, group_limit), machine_has("SwapTotal:"));
}
