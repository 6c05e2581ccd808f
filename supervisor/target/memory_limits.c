#include "supervisor/target/memory_limits.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "lib/limits.h"
#include "lib/procfs.h"
#include "lib/util.h"

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
