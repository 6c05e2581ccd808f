/*
 * memory_limits.c - counts of mappings and locked memory against the limits of the process.
 */
#include "supervisor/target/memory_limits.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "lib/limits.h"
#include "lib/procfs.h"
#include "lib/util.h"
#include "shared/batch.h"

/* mremap(2) asks for the most room: five mappings (mremap_to() in mm/mremap.c). */
#define MAPPINGS_NEEDED 6

/* 0: cannot be told. [vsyscall] is no mapping. */
static size_t count_mappings(pid_t pid)
{
	cleanup_free char *path = xasprintf("/proc/%d/maps", pid);
	cleanup_free char *text = NULL;
	size_t size, count = 0;

	if (read_file(path, &text, &size, NULL))
		return 0;
	for (const char *p = text; (p = strchr(p, '\n')); p++)
		count++;
	return strstr(text, "[vsyscall]") ? count - 1 : count;
}

static void tell_mappings(pid_t pid, struct err *e)
{
	cleanup_free char *text = NULL;
	size_t size, most, count = count_mappings(pid);

	if (read_file("/proc/sys/vm/max_map_count", &text, &size, NULL))
		return;
	most = strtoull(text, NULL, 10);
	if (count + MAPPINGS_NEEDED > most)
		err_append(e,
			" (the process has %zu mappings, %d more may be needed, and "
			"vm.max_map_count is %zu)",
			count, MAPPINGS_NEEDED, most);
}

/* What a restart has in a process beside the program's memory: the loader, and what it is to
 * do: some four calls a mapping (struct batch_call), and a stack and calls a thread. */
#define LOADER_NEEDS  (256ull << 10)
#define MAPPING_NEEDS 512ull
#define THREAD_NEEDS  (8ull << 10)

int memory_limits_most(int resource, uint64_t *most)
{
	struct rlimit own;

	if (getrlimit(resource, &own))
		BUG();
	*most = own.rlim_max;
	return own.rlim_max == RLIM_INFINITY || procfs_has_capability(CAP_SYS_RESOURCE) ? 0
											: -1;
}

uint64_t memory_limits_contents(size_t extents, uint64_t hashes)
{
	return extents * sizeof(struct batch_call) + hashes;
}

static bool is_limited(void)
{
	uint64_t most;

	return memory_limits_most(RLIMIT_AS, &most) || memory_limits_most(RLIMIT_DATA, &most);
}

int memory_limits_measure(pid_t pid, struct memory_use *use, struct err *e)
{
	cleanup_free char *status = NULL;

	*use = (struct memory_use){.pid = pid};
	if (!is_limited())
		return 0;
	status = procfs_status(pid, pid, e);
	if (!status)
		return -1;
	*use = (struct memory_use){
		.pid = pid,
		.space = status_number(status, "VmSize", 10) << 10,
		.data = status_number(status, "VmData", 10) << 10,
		.restart_needs = LOADER_NEEDS + count_mappings(pid) * MAPPING_NEEDS +
				 status_number(status, "Threads", 10) * THREAD_NEEDS,
	};
	return 0;
}

static int refuse_beyond(const struct memory_use *use, int resource, char option,
	uint64_t contents, struct err *e)
{
	uint64_t used = resource == RLIMIT_AS ? use->space : use->data;
	uint64_t needs = use->restart_needs + contents, most;

	if (!memory_limits_most(resource, &most) || used + needs <= most)
		return 0;
	return err_set(e, 0,
		"process %d has %" PRIu64 " KiB, a restart needs %" PRIu64
		" KiB more for a moment, and no more than %" PRIu64
		" KiB are allowed here (%s): raise the hard limit (ulimit -H%c) before "
		"trecr-run",
		use->pid, used >> 10, needs >> 10, most >> 10, limit_name(resource), option);
}

int memory_limits_refuse(const struct memory_use *use, uint64_t contents, struct err *e)
{
	return refuse_beyond(use, RLIMIT_AS, 'v', contents, e) ||
			       refuse_beyond(use, RLIMIT_DATA, 'd', contents, e)
		       ? -1
		       : 0;
}

/* How much was asked for is not known: a limit is named that there is. */
static void tell_limit(pid_t pid, int resource, const char *key, struct err *e)
{
	cleanup_free char *status = procfs_status(pid, pid, NULL);
	struct rlimit limit;

	if (status && !prlimit(pid, resource, NULL, &limit) && limit.rlim_cur != RLIM_INFINITY)
		err_append(e, " (the process has %llu KiB, %s is %llu KiB)",
			(unsigned long long)status_number(status, key, 10),
			limit_name(resource), (unsigned long long)limit.rlim_cur >> 10);
}

int memory_limits_tell(pid_t pid, struct err *e)
{
	if (!e || e->code != ENOMEM)
		return -1;
	tell_mappings(pid, e);
	tell_limit(pid, RLIMIT_AS, "VmSize", e);
	tell_limit(pid, RLIMIT_DATA, "VmData", e);
	return -1;
}
