/*
 * descriptors_list.c - out of /proc/PID/fd, or /proc/PID/task/TID/fd where a thread has a
 * table of its own.
 */
#include "supervisor/fd_table/descriptors_list.h"

#include <dirent.h>
#include <errno.h>
#include <linux/kcmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/limits.h"
#include "lib/procfs.h"

int descriptors_list(pid_t task, int limit, struct buf *numbers, struct err *e)
{
	cleanup_free char *path = xasprintf("/proc/%d/fd", task);
	struct dirent *entry;
	DIR *dir = opendir(path);

	if (!dir)
		return err_set(e, errno, "cannot list %s", path);
	while ((entry = readdir(dir))) {
		int fd = atoi(entry->d_name);

		if (entry->d_name[0] != '.' && fd < limit)
			buf_push(numbers, int, &fd);
	}
	closedir(dir);
	if (numbers->len)
		qsort(numbers->data, buf_count(numbers, int), sizeof(int), compare_ints);
	return 0;
}

int descriptors_task(pid_t pid, pid_t *task, struct buf *own, struct err *e)
{
	cleanup_free pid_t *ids = NULL;
	struct proc_stat st;
	size_t count;
	int r;

	*task = 0;
	if (procfs_tasks(pid, &ids, &count, e))
		return -1;
	for (size_t i = 0; i < count; i++) {
		r = *task ? syscall(SYS_kcmp, *task, ids[i], KCMP_FILES, 0L, 0L) : 1;
		if (r < 0)
			return limit_err(
				e, errno, SYS_kcmp, "cannot compare descriptor tables (kcmp)");
		if (!r)
			continue;
		if (procfs_stat(pid, ids[i], &st, e))
			return -1;
		if (strchr("ZX", st.state) || procfs_is_worker(&st))
			continue;
		if (!*task)
			*task = ids[i];
		else if (own)
			buf_push(own, pid_t, &ids[i]);
	}
	return *task ? 0 : err_set(e, 0, "process %d has ended", pid);
}
