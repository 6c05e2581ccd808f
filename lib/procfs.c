/*
 * procfs.c - maps, stat, status, tasks and children: a parser for each.
 */
#include "lib/procfs.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "lib/shown_path.h"
#include "lib/util.h"

static const struct {
	char name[3];
	uint64_t bit;
} vm_flags[] = {
	{"gd", VMA_GROWSDOWN},
	{"lo", VMA_LOCKED},
	{"nr", VMA_NORESERVE},
	{"sr", VMA_SEQUENTIAL},
	{"rr", VMA_RANDOM},
	{"dc", VMA_DONTFORK},
	{"dd", VMA_DONTDUMP},
	{"wf", VMA_WIPEONFORK},
	{"mg", VMA_MERGEABLE},
	{"hg", VMA_HUGEPAGE},
	{"nh", VMA_NOHUGEPAGE},
	{"ht", VMA_HUGETLB},
	{"io", VMA_IO},
	{"pf", VMA_PFNMAP},
	{"um", VMA_UFFD},
	{"uw", VMA_UFFD_WP},
	{"ui", VMA_UFFD},
	{"ss", VMA_SHADOWSTACK},
	{"lf", VMA_LOCKONFAULT},
	{"sl", VMA_SEALED},
	{"dp", VMA_DROPPABLE},
};

/* "rd wr mr mw me ac sd": two letters each. */
static void parse_vm_flags(struct vma *v, const char *s)
{
	for (; *s; s++) {
		if (isspace((unsigned char)*s))
			continue;
		if (!s[1])
			return;
		for (size_t i = 0; i < ARRAY_SIZE(vm_flags); i++)
			if (!memcmp(s, vm_flags[i].name, 2))
				v->flags |= vm_flags[i].bit;
		if (!memcmp(s, "mr", 2))
			v->max_prot |= PROT_READ;
		if (!memcmp(s, "mw", 2))
			v->max_prot |= PROT_WRITE;
		if (!memcmp(s, "me", 2))
			v->max_prot |= PROT_EXEC;
		s++;
	}
}

static bool is_inode(const char *path, uint64_t inode)
{
	struct stat st;

	return !lstat(path, &st) && st.st_ino == inode;
}

/* A line has no room for a file name's newlines: the kernel writes \\012, and a backslash as it
 * is (show_map_vma(), fs/proc/task_mmu.c). What is meant shows by what is there. */
static void find_newlines(struct vma *v)
{
	cleanup_free char *name = NULL;
	const char *from = v->name;
	char *to;

	if (!v->inode || !strstr(v->name, "\\012") || is_inode(v->name, v->inode))
		return;
	to = name = xmalloc(strlen(v->name) + 1);
	while (*from) {
		bool newline = !strncmp(from, "\\012", 4);

		*to++ = newline ? '\n' : *from;
		from += newline ? 4 : 1;
	}
	*to = 0;
	if (is_inode(name, v->inode))
		memcpy(v->name, name, strlen(name) + 1);
}

/* A number that ends in @end, which is passed, too, or with the line. */
static bool take_number(const char **at, int base, char end, uint64_t *number)
{
	char *behind;

	*number = strtoull(*at, &behind, base);
	if (behind == *at || (*behind && *behind != end))
		return false;
	*at = *behind ? behind + 1 : behind;
	return true;
}

static bool take_permissions(const char **at, struct vma *v)
{
	const char *perm = *at;

	if (strnlen(perm, 5) < 5 || perm[4] != ' ')
		return false;
	v->prot = (perm[0] == 'r' ? PROT_READ : 0) | (perm[1] == 'w' ? PROT_WRITE : 0) |
		  (perm[2] == 'x' ? PROT_EXEC : 0);
	v->shared = perm[3] == 's';
	*at += 5;
	return true;
}

/* "55d0c-55d0e r--p 00000000 fe:00 131 /usr/bin/x": true when @line is such a one. */
static bool parse_map_line(struct vma *v, const char *line)
{
	uint64_t major, minor;

	memset(v, 0, sizeof(*v));
	if (!isxdigit((unsigned char)line[0]) || isupper((unsigned char)line[0]))
		return false;
	if (!take_number(&line, 16, '-', &v->start) || !take_number(&line, 16, ' ', &v->end) ||
		!take_permissions(&line, v) || !take_number(&line, 16, ' ', &v->offset) ||
		!take_number(&line, 16, ':', &major) || !take_number(&line, 16, ' ', &minor) ||
		!take_number(&line, 10, ' ', &v->inode))
		return false;
	v->dev = makedev(major, minor);
	v->page_size = 4096;
	v->name = xstrdup(line + strspn(line, " "));
	shown_path(v->name);
	find_newlines(v);
	return true;
}

/* The number behind @label, if @line begins with that. */
static bool has_label(const char *line, const char *label, uint64_t *number)
{
	size_t size = strlen(label);

	if (strncmp(line, label, size))
		return false;
	*number = strtoull(line + size, NULL, 10);
	return true;
}

/* A line of smaps behind a mapping's first. Most are not looked at. */
static void parse_detail(struct vma *v, const char *line)
{
	uint64_t number;

	if (!strchr("VPSAK", *line))
		return;
	if (!strncmp(line, "VmFlags:", 8))
		parse_vm_flags(v, line + 8);
	else if (has_label(line, "ProtectionKey:", &number))
		v->protection_key = number;
	else if (has_label(line, "Shared_Clean:", &number) ||
		 has_label(line, "Shared_Dirty:", &number))
		v->in_common |= number > 0;
	else if (has_label(line, "Anonymous:", &number))
		v->own_bytes += number * 1024;
	else if (has_label(line, "Swap:", &number)) {
		v->swapped = number > 0;
		v->own_bytes += number * 1024;
	} else if (has_label(line, "KernelPageSize:", &number))
		v->page_size = number * 1024;
}

/* Entries that fit what is read at once, with room to spare in the page that the kernel collects them
 * in: of an entry that does not fit into the rest of its page it throws the text away and walks the
 * mapping's page tables once more at the next read (seq_read_iter(), fs/seq_file.c). */
#define SMAPS_STEP 2048

void vma_list_parse(char *text, struct vma_list *list)
{
	struct buf out = {0};
	struct vma v;
	char *line, *end;

	for (line = text; *line; line = end + 1) {
		end = strchr(line, '\n');
		if (!end)
			break;
		*end = 0;
		if (parse_map_line(&v, line)) {
			buf_push(&out, struct vma, &v);
		} else if (out.len) {
			struct vma *last =
				buf_at(&out, struct vma, buf_count(&out, struct vma) - 1);

			parse_detail(last, line);
		}
	}
	list->v = out.data;
	list->count = buf_count(&out, struct vma);
}

int procfs_vmas(pid_t pid, struct vma_list *list, struct err *e)
{
	cleanup_free char *path = xasprintf("/proc/%d/smaps", pid);
	cleanup_free char *text = NULL;
	size_t len;

	if (read_file_in_steps(path, SMAPS_STEP, &text, &len, e))
		return -1;
	vma_list_parse(text, list);
	return 0;
}

int procfs_maps(pid_t pid, struct vma_list *list, struct err *e)
{
	cleanup_free char *path = xasprintf("/proc/%d/maps", pid);
	cleanup_free char *text = NULL;
	size_t len;

	if (read_file(path, &text, &len, e))
		return -1;
	vma_list_parse(text, list);
	return 0;
}

void vma_list_free(struct vma_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->v[i].name);
	free(list->v);
	memset(list, 0, sizeof(*list));
}

int procfs_stat(pid_t pid, pid_t tid, struct proc_stat *st, struct err *e)
{
	cleanup_free char *path = xasprintf("/proc/%d/task/%d/stat", pid, tid);
	cleanup_free char *text = NULL;
	size_t len, n;
	char *open, *close, *p;

	memset(st, 0, sizeof(*st));
	if (read_file(path, &text, &len, e))
		return -1;
	/* The name may hold anything, also ')': it ends at the last one. */
	open = strchr(text, '(');
	close = strrchr(text, ')');
	if (!open || !close || close[1] != ' ')
		return err_set(e, 0, "cannot parse %s", path);
	n = close - open - 1;
	if (n >= sizeof(st->comm))
		n = sizeof(st->comm) - 1;
	memcpy(st->comm, open + 1, n);
	st->state = close[2];
	p = close + 3;
	for (int i = 4; i < (int)ARRAY_SIZE(st->field); i++)
		st->field[i] = strtoull(p, &p, 10);
	return 0;
}

char *procfs_status(pid_t pid, pid_t tid, struct err *e)
{
	cleanup_free char *path = xasprintf("/proc/%d/task/%d/status", pid, tid);
	char *text;
	size_t len;

	return read_file(path, &text, &len, e) ? NULL : text;
}

const char *status_value(const char *status, const char *key)
{
	size_t n = strlen(key);

	for (const char *p = status; p; p = strchr(p, '\n')) {
		if (*p == '\n')
			p++;
		if (!strncmp(p, key, n) && p[n] == ':') {
			p += n + 1;
			while (*p == ' ' || *p == '\t')
				p++;
			return p;
		}
	}
	return "";
}

uint64_t status_number(const char *status, const char *key, int base)
{
	return strtoull(status_value(status, key), NULL, base);
}

bool procfs_is_pending(pid_t pid, int signal)
{
	cleanup_free char *status = procfs_status(pid, pid, NULL);

	return status && status_number(status, "ShdPnd", 16) >> (signal - 1) & 1;
}

/* Those up to the @n-th: how many there were, and the last of them in *last. */
static size_t read_numbers(const char *status, const char *key, size_t n, uint64_t *last)
{
	const char *p = status_value(status, key);
	size_t count = 0;

	*last = 0;
	while (*p && *p != '\n' && count < n) {
		char *end;
		uint64_t number = strtoull(p, &end, 10);

		if (end == p)
			break;
		*last = number;
		count++;
		for (p = end; *p == ' ' || *p == '\t'; p++)
			;
	}
	return count;
}

uint64_t status_last_number(const char *status, const char *key)
{
	uint64_t last;

	read_numbers(status, key, SIZE_MAX, &last);
	return last;
}

uint64_t status_nth_number(const char *status, const char *key, size_t n)
{
	uint64_t last;

	return read_numbers(status, key, n, &last) == n ? last : 0;
}

size_t status_count_numbers(const char *status, const char *key)
{
	uint64_t last;

	return read_numbers(status, key, SIZE_MAX, &last);
}

int procfs_tasks(pid_t pid, pid_t **ids, size_t *count, struct err *e)
{
	cleanup_free char *path = xasprintf("/proc/%d/task", pid);
	struct buf out = {0};
	struct dirent *d;
	DIR *dir = opendir(path);

	if (!dir)
		return err_set(e, errno, "cannot list %s", path);
	while ((d = readdir(dir))) {
		pid_t id = atoi(d->d_name);

		if (id > 0)
			buf_push(&out, pid_t, &id);
	}
	closedir(dir);
	*count = buf_count(&out, pid_t);
	*ids = out.data;
	return 0;
}

/* A thread that has just ended has left its children to another one. */
static int add_children(pid_t pid, pid_t tid, struct buf *out, struct err *e)
{
	cleanup_free char *path = xasprintf("/proc/%d/task/%d/children", pid, tid);
	cleanup_free char *text = NULL;
	struct err why = ERR_INIT;
	char *p, *end;
	size_t len;

	if (read_file(path, &text, &len, &why)) {
		if (why.code == ENOENT || why.code == ESRCH)
			return 0;
		if (e)
			*e = why;
		return -1;
	}
	for (p = text;; p = end) {
		pid_t id = strtol(p, &end, 10);

		if (end == p)
			return 0;
		buf_push(out, pid_t, &id);
	}
}

static int take_children(struct buf *found, int failed, pid_t **ids, size_t *count)
{
	if (failed) {
		buf_free(found);
		return -1;
	}
	*count = buf_count(found, pid_t);
	*ids = found->data;
	return 0;
}

int procfs_children(pid_t pid, pid_t **ids, size_t *count, struct err *e)
{
	cleanup_free pid_t *tasks = NULL;
	size_t n;

	return procfs_tasks(pid, &tasks, &n, e)
		       ? -1
		       : procfs_children_of(pid, tasks, n, ids, count, e);
}

int procfs_children_of(pid_t pid, const pid_t *tasks, size_t task_count, pid_t **ids,
	size_t *count, struct err *e)
{
	struct buf found = {0};
	int failed = 0;

	for (size_t i = 0; i < task_count && !failed; i++)
		failed = add_children(pid, tasks[i], &found, e);
	return take_children(&found, failed, ids, count);
}

int procfs_thread_children(pid_t pid, pid_t tid, pid_t **ids, size_t *count, struct err *e)
{
	struct buf found = {0};

	return take_children(&found, add_children(pid, tid, &found, e), ids, count);
}

pid_t procfs_last_pid(void)
{
	cleanup_free char *text = NULL;
	size_t len;
	char *last;

	if (read_file("/proc/loadavg", &text, &len, NULL))
		return 0;
	last = strrchr(text, ' ');
	return last ? atoi(last + 1) : 0;
}

/* Field 22 is in ticks since the system's start, time asleep included (man proc_pid_stat). */
/* PF_IO_WORKER of the kernel's <linux/sched.h>: workers (iou-wrk-PID) and threads that poll a
 * submission queue (iou-sqp-PID). */
#define FLAG_IO_WORKER 0x10

bool procfs_is_worker(const struct proc_stat *st)
{
	return st->field[STAT_FLAGS] & FLAG_IO_WORKER;
}

time_t procfs_start_time(const struct proc_stat *st)
{
	uint64_t boot_ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME);

	return boot_ns / 1000000000 + st->field[STAT_START_TIME] / sysconf(_SC_CLK_TCK);
}

bool procfs_has_capability(int capability)
{
	cleanup_free char *status = procfs_status(getpid(), getpid(), NULL);

	return status && status_number(status, "CapEff", 16) >> capability & 1;
}
