/*
 * A process: what all of its threads have in common, from /proc and by calls that are run in
 * it; and the refusal of what cannot be saved, before anything is run there (dump_refuse()).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "lib/shown_path.h"
#include "supervisor/fd_kinds/removed_directory.h"
#include "supervisor/state/cgroup.h"
#include "supervisor/state/core_notes.h"
#include "supervisor/state/dump.h"
#include "supervisor/state/membarrier.h"
#include "supervisor/state/mempolicy.h"
#include "supervisor/state/own_state.h"
#include "supervisor/state/seccomp.h"
#include "supervisor/state/thread_settings_dump.h"
#include "supervisor/target/memory_limits.h"
#include "supervisor/target/pagemap.h"
#include "supervisor/target/remote_query.h"

/* <asm/prctl.h> of kernel 5.16 */
#define ARCH_GET_XCOMP_PERM 0x1022

/* <linux/prctl.h> of kernels 6.3 and 6.4 */
#ifndef PR_GET_MDWE
#define PR_GET_MDWE 66
#endif
#ifndef PR_GET_MEMORY_MERGE
#define PR_GET_MEMORY_MERGE 68
#endif

void dump_free(struct dump *d)
{
	vma_list_free(&d->vmas);
	buf_free(&d->regions);
	buf_free(&d->policies);
	buf_free(&d->modules_used);
	buf_free(&d->runs);
	buf_free(&d->copied_runs);
	buf_free(&d->device_runs);
	for (size_t i = 0; i < buf_count(&d->contexts, void *); i++)
		free(*buf_at(&d->contexts, void *, i));
	buf_free(&d->contexts);
	buf_free(&d->device);
	buf_free(&d->watched);
}

static const char *const namespaces[NAMESPACES] = {"mnt", "pid", "user", "net", "ipc", "uts",
	"cgroup", "time", "time_for_children", "pid_for_children"};

void namespaces_read(struct namespaces *n, pid_t of, pid_t clocks_of)
{
	for (size_t i = 0; i < NAMESPACES; i++) {
		/* What makes the program's first process has clocks of its own. */
		bool time = !strncmp(namespaces[i], "time", 4);
		cleanup_free char *path = xasprintf(
			"/proc/%d/ns/%s", time ? clocks_of : of, time ? "time" : namespaces[i]);

		n->links[i] = read_link(path, NULL);
	}
}

void namespaces_free(struct namespaces *n)
{
	for (size_t i = 0; i < NAMESPACES; i++)
		free(n->links[i]);
}

static int refuse_namespaces(struct dump *d, pid_t tid, struct err *e)
{
	struct process *p = d->process;

	for (size_t i = 0; i < NAMESPACES; i++) {
		cleanup_free char *path =
			xasprintf("/proc/%d/task/%d/ns/%s", p->pid, tid, namespaces[i]);
		const char *ours = d->namespaces->links[i];
		cleanup_free char *its = ours ? read_link(path, NULL) : NULL;

		/* One for children that has no init yet cannot be read. */
		if (ours && (!its || strcmp(ours, its)))
			return err_set(e, 0,
				"process %d (%s) has entered a namespace of its own (%s): "
				"start trecr-run inside of it, as in unshare ... trecr-run "
				"PROGRAM (bwrap, and others that make namespaces, likewise)",
				p->pid, p->comm, its ? its : namespaces[i]);
	}
	return 0;
}

static bool same_line(const char *a, const char *b, const char *key)
{
	const char *x = status_value(a, key), *y = status_value(b, key);
	size_t n = strcspn(x, "\n");

	return n == strcspn(y, "\n") && !memcmp(x, y, n);
}

/* Identity is saved once for the process. @first: the status of the first thread. */
static int refuse_differing(
	struct dump *d, const struct thread *t, const char *first, struct err *e)
{
	static const char *const keys[] = {"Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff",
		"CapBnd", "CapAmb", "NoNewPrivs"};
	struct process *p = d->process;
	const char *status = t->status;

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (!same_line(first, status, keys[i]))
			return err_set(e, 0,
				"thread %d of process %d (%s) has a %s of its own, which is "
				"not supported",
				t->tracee.tid, p->pid, p->comm, keys[i]);
	return 0;
}

/* What would be lost without a word, and what an injected system call would set off. */
static int refuse_thread(struct dump *d, struct thread *t, const char *first, struct err *e)
{
	struct process *p = d->process;
	const char *status = t->status;
	bool dispatch, ports, segments;

	if (tracee_get_dispatch(&t->tracee, &dispatch, e) ||
		tracee_get_ports(&t->tracee, &ports, e) ||
		tracee_get_segments(&t->tracee, &segments, e))
		return -1;
	if (dispatch)
		return err_set(e, 0,
			"process %d (%s) has its system calls dispatched to user space "
			"(PR_SET_SYSCALL_USER_DISPATCH), which is not supported",
			p->pid, p->comm);
	if (!strncmp(status_value(status, "x86_Thread_features"), "shstk", 5))
		return err_set(e, 0,
			"process %d (%s) uses a shadow stack, which is not supported yet",
			p->pid, p->comm);
	if (ports)
		return err_set(e, 0,
			"process %d (%s) has access to I/O ports (ioperm), which is not "
			"supported",
			p->pid, p->comm);
	if (segments)
		return err_set(e, 0,
			"process %d (%s) has segments of its own (set_thread_area), which is "
			"not supported",
			p->pid, p->comm);
	if (~strtoull(status_value(status, "untag_mask"), NULL, 16) &&
		*status_value(status, "untag_mask"))
		return err_set(e, 0,
			"process %d (%s) uses tagged pointers (LAM), which is not "
			"supported",
			p->pid, p->comm);
	return seccomp_suspend(p, t, d->own->status, e) ||
			       refuse_namespaces(d, t->tracee.tid, e) ||
			       refuse_differing(d, t, first, e)
		       ? -1
		       : 0;
}

int dump_refuse(struct dump *d, struct err *e)
{
	struct process *p = d->process;
	const char *first = p->threads[0].status;

	if (memory_limits_measure(p->task, &d->use, e) || memory_limits_refuse(&d->use, 0, e))
		return -1;
	d->has_capabilities = status_number(first, "CapPrm", 16);
	for (size_t i = 0; i < p->thread_count; i++)
		if (refuse_thread(d, &p->threads[i], first, e))
			return -1;
	return 0;
}

static void read_ids(const char *status, struct image_process *ip)
{
	const char *uid = status_value(status, "Uid"), *gid = status_value(status, "Gid");

	sscanf(uid, "%u %u %u %u", &ip->uid[0], &ip->uid[1], &ip->uid[2], &ip->uid[3]);
	sscanf(gid, "%u %u %u %u", &ip->gid[0], &ip->gid[1], &ip->gid[2], &ip->gid[3]);
	ip->cap_inheritable = status_number(status, "CapInh", 16);
	ip->cap_permitted = status_number(status, "CapPrm", 16);
	ip->cap_effective = status_number(status, "CapEff", 16);
	ip->cap_bounding = status_number(status, "CapBnd", 16);
	ip->cap_ambient = status_number(status, "CapAmb", 16);
	ip->no_new_privs = status_number(status, "NoNewPrivs", 10);
	ip->umask = status_number(status, "Umask", 8);
}

static void write_groups(struct dump *d, const char *status)
{
	const char *p = status_value(status, "Groups");

	while (*p && *p != '\n') {
		char *end;
		uint32_t group = strtoul(p, &end, 10);

		if (end == p)
			break;
		image_writer_note(d->writer, IMAGE_NOTE_GROUPS, &group, sizeof(group));
		for (p = end; *p == ' '; p++)
			;
	}
}

/* Fields of /proc/PID/stat by number, see man proc_pid_stat. */
static int read_mm(struct dump *d, struct image_process *ip, struct err *e)
{
	struct proc_stat st;

	if (procfs_stat(d->process->pid, d->process->task, &st, e))
		return -1;
	ip->start_code = st.field[STAT_START_CODE];
	ip->end_code = st.field[STAT_END_CODE];
	ip->start_stack = st.field[STAT_START_STACK];
	ip->start_data = st.field[STAT_START_DATA];
	ip->end_data = st.field[STAT_END_DATA];
	ip->start_brk = st.field[STAT_START_BRK];
	ip->arg_start = st.field[STAT_ARG_START];
	ip->arg_end = st.field[STAT_ARG_END];
	ip->env_start = st.field[STAT_ENV_START];
	ip->env_end = st.field[STAT_ENV_END];
	return 0;
}

static int read_proc_number(pid_t pid, const char *name, int base, uint32_t *value)
{
	cleanup_free char *path = xasprintf("/proc/%d/%s", pid, name);
	cleanup_free char *text = NULL;
	size_t len;

	if (read_file(path, &text, &len, NULL))
		return -1;
	*value = strtol(text, NULL, base);
	return 0;
}

/* That @path of /proc and @target, what it shows, are one directory, or that it is a working
 * directory that can be made anew. */
static int check_directory(struct dump *d, struct image_process *ip, const char *name,
	const char *path, const char *target, struct err *e)
{
	const char *what = strcmp(name, "cwd") ? "root" : "working";
	cleanup_free char *inside = xasprintf("/proc/%d/root%s", d->process->task, target);
	struct stat is, named;

	if (stat(path, &is))
		return err_set(e, errno, "cannot examine the %s directory of process %d (%s)",
			what, d->process->pid, d->process->comm);
	for (int i = 0; i < 2; i++)
		if (!stat(i ? inside : target, &named) && named.st_ino == is.st_ino &&
			named.st_dev == is.st_dev)
			return 0;
	if (is.st_nlink)
		return err_set(e, 0,
			"the %s directory of process %d (%s) cannot be found under its name "
			"any more: %s",
			what, d->process->pid, d->process->comm, target);
	if (!strcmp(name, "root"))
		return err_set(e, 0,
			"the root directory of process %d (%s) has been removed, which is not "
			"supported: %s",
			d->process->pid, d->process->comm, target);
	image_writer_incompat(d->writer, IMAGE_INCOMPAT_REMOVED);
	ip->cwd_object = fd_dump_removed(d->fds, path, target, e);
	return ip->cwd_object ? 0 : -1;
}

static int read_links(struct dump *d, struct image_process *ip, struct err *e)
{
	static const char *const names[3] = {"exe", "cwd", "root"};
	uint32_t *strings[3] = {&ip->exe, &ip->cwd, &ip->root};

	for (int i = 0; i < 3; i++) {
		cleanup_free char *path = xasprintf("/proc/%d/%s", d->process->task, names[i]);
		cleanup_free char *target = read_shown_link(path, e);

		if (!target || (i && check_directory(d, ip, names[i], path, target, e)))
			return -1;
		*strings[i] = image_writer_string(d->writer, target);
	}
	return 0;
}

/* Width of the names in /proc/PID/limits. */
#define LIMIT_NAME 26

static uint64_t limit_of(const char *text)
{
	return strcmp(text, "unlimited") ? strtoull(text, NULL, 10) : RLIM_INFINITY;
}

/* A line for each limit, in the order of their numbers. prlimit(2) on another user's process
 * takes a privilege that root often lacks in a container. */
static int read_limits(struct dump *d, struct image_process *ip, struct err *e)
{
	cleanup_free char *path = xasprintf("/proc/%d/limits", d->process->task);
	cleanup_free char *text = NULL;
	size_t len;
	char *line;

	if (read_file(path, &text, &len, e))
		return -1;
	line = text;
	for (int i = 0; i < IMAGE_RLIMITS; i++) {
		char soft[24], hard[24];

		line = strchr(line, '\n');
		if (!line || strlen(++line) < LIMIT_NAME ||
			sscanf(line + LIMIT_NAME, "%23s %23s", soft, hard) != 2)
			return err_set(e, 0, "cannot parse %s", path);
		ip->rlimit_cur[i] = limit_of(soft);
		ip->rlimit_max[i] = limit_of(hard);
	}
	return 0;
}

/* What only the process itself can ask for: all at once (target/remote_query.h). */
enum {
	ASK_BREAK,
	ASK_DUMPABLE,
	ASK_SECUREBITS,
	ASK_THP,
	ASK_SUBREAPER,
	ASK_XCOMP,
	ASK_MDWE,
	ASK_MEMORY_MERGE,
	ASK_LDT,
	ASK_MEMBARRIER,
	QUESTIONS
};

static int refuse_answer(
	const struct remote *r, const char *what, int64_t result, struct err *e)
{
	return err_set(e, -result, "cannot read %s of process %d", what, r->process->pid);
}

/* Kernels that do not know of a setting answer EINVAL; then nobody has made it. */
static int take_setting(const struct remote *r, const char *what, const struct remote_query *q,
	uint32_t *value, struct err *e)
{
	if (q->result < 0 && q->result != -EINVAL)
		return refuse_answer(r, what, q->result, e);
	*value = q->result < 0 ? 0 : q->result;
	return 0;
}

/* @q: QUESTIONS of them. */
static int take_settings(struct dump *d, struct remote *r, const struct remote_query *q,
	struct image_process *ip, struct err *e)
{
	static const char *const names[] = {[ASK_BREAK] = "the break",
		[ASK_DUMPABLE] = "dumpable",
		[ASK_SECUREBITS] = "the secure bits",
		[ASK_THP] = "the THP setting",
		[ASK_SUBREAPER] = "subreaper"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (q[i].result < 0)
			return refuse_answer(r, names[i], q[i].result, e);
	ip->brk = q[ASK_BREAK].result;
	ip->dumpable = q[ASK_DUMPABLE].result;
	ip->securebits = q[ASK_SECUREBITS].result;
	ip->thp_disable = q[ASK_THP].result;
	d->process->adopts = ip->child_subreaper;
	/* Segments that a program has made for itself are used by their numbers. ENOSYS: this
	 * kernel has none. */
	if (q[ASK_LDT].result > 0)
		return err_set(e, 0,
			"it has segments of its own (modify_ldt), which is not supported");
	return take_setting(r, "the W^X setting", &q[ASK_MDWE], &ip->mdwe, e) ||
			       take_setting(r, "the KSM setting", &q[ASK_MEMORY_MERGE],
				       &ip->memory_merge, e) ||
			       membarrier_read(r, &q[ASK_MEMBARRIER], &ip->membarrier, e)
		       ? -1
		       : 0;
}

/* With signal actions, interval timers, keyrings, and the settings of the thread that is asked, the first, so that the
 * process runs once for all. */
static int read_remote(struct dump *d, struct remote *r, struct image_process *ip,
	struct process_timers *timers, struct thread_settings *settings,
	struct image_thread *first, struct err *e)
{
	enum {
		ACTIONS_AT = QUESTIONS,
		TIMERS_AT = ACTIONS_AT + SIGACTIONS,
		KEYRINGS_AT = TIMERS_AT + INTERVAL_TIMERS
	};
	struct kernel_sigaction actions[SIGACTIONS];
	struct interval_timer interval_timers[INTERVAL_TIMERS];
	uint64_t xcomp = 0, segment;
	struct thread_questions *own = &settings->questions;
	struct remote_query q[KEYRINGS_AT + KEYRING_QUERIES + THREAD_QUERIES] = {
		[ASK_BREAK] = {.nr = SYS_brk},
		[ASK_DUMPABLE] = {.nr = SYS_prctl, .args = {PR_GET_DUMPABLE}},
		[ASK_SECUREBITS] = {.nr = SYS_prctl, .args = {PR_GET_SECUREBITS}},
		[ASK_THP] = {.nr = SYS_prctl, .args = {PR_GET_THP_DISABLE}},
		[ASK_SUBREAPER] = {.nr = SYS_prctl,
			.args = {PR_GET_CHILD_SUBREAPER},
			.out_arg = 2,
			.out = &ip->child_subreaper,
			.size = sizeof(ip->child_subreaper)},
		[ASK_XCOMP] = {.nr = SYS_arch_prctl,
			.args = {ARCH_GET_XCOMP_PERM},
			.out_arg = 2,
			.out = &xcomp,
			.size = sizeof(xcomp)},
		[ASK_MDWE] = {.nr = SYS_prctl, .args = {PR_GET_MDWE}},
		[ASK_MEMORY_MERGE] = {.nr = SYS_prctl, .args = {PR_GET_MEMORY_MERGE}},
		[ASK_LDT] = {.nr = SYS_modify_ldt,
			.args = {0, 0, sizeof(segment)},
			.out_arg = 2,
			.out = &segment,
			.size = sizeof(segment)},
		[ASK_MEMBARRIER] = membarrier_question(),
	};
	size_t keyrings = ask_keyrings(&q[KEYRINGS_AT]), own_at = KEYRINGS_AT + keyrings;

	ask_sigactions(&q[ACTIONS_AT], actions);
	ask_interval_timers(&q[TIMERS_AT], interval_timers);
	memcpy(&q[own_at], own->list, own->count * sizeof(*q));
	if (remote_query(r, q, own_at + own->count, e))
		return -1;
	memcpy(own->list, &q[own_at], own->count * sizeof(*q));
	if (take_settings(d, r, q, ip, e) || dump_sigactions(d, &q[ACTIONS_AT], actions, e) ||
		take_thread_settings(d, r, settings, first, e))
		return -1;
	/* Kernels and processors without AMX do not know it. */
	ip->xcomp_permission = q[ASK_XCOMP].result ? 0 : xcomp;
	if (keyrings)
		dump_keyrings(d, &q[KEYRINGS_AT]);
	return dump_timers_and_pending(d, r, &q[TIMERS_AT], interval_timers, timers, e);
}

/* mlockall(MCL_FUTURE) shows in no file, but in what becomes of newly mapped memory: it is
 * locked, and with MCL_ONFAULT not there yet. */
static int read_lock_future(struct dump *d, uint64_t locked_before, uint64_t scratch,
	struct image_process *ip, struct err *e)
{
	cleanup_free char *status = procfs_status(d->process->pid, d->process->task, e);
	cleanup_fd int pagemap = pagemap_open(d->process->task, e);
	uint64_t entry;

	if (!status || pagemap < 0)
		return -1;
	if (status_number(status, "VmLck", 10) == locked_before)
		return 0;
	ip->flags |= IMAGE_PROCESS_LOCK_FUTURE;
	if (pread_all(pagemap, &entry, sizeof(entry), scratch / 4096 * 8, "the page table", e))
		return -1;
	if (!(entry >> 63))
		ip->flags |= IMAGE_PROCESS_LOCK_ONFAULT;
	return 0;
}

static int run_remote(struct dump *d, uint64_t locked, struct image_process *ip,
	struct image_thread *first, struct err *e)
{
	struct thread *thread = &d->process->threads[0];
	struct process_timers timers = {0};
	struct thread_settings settings = {0};
	struct remote r;
	uint64_t scratch;
	int failed;

	if (ask_thread_settings(d, thread, &settings, first, e) ||
		remote_begin(&r, d->process, thread, e))
		return -1;
	scratch = remote_query_scratch(&r, e);
	failed = !scratch || read_lock_future(d, locked, scratch, ip, e) ||
		 read_remote(d, &r, ip, &timers, &settings, first, e) ||
		 mempolicy_dump(d, &r, scratch, e);
	memcpy(ip->itimer_value_us, timers.value_us, sizeof(timers.value_us));
	memcpy(ip->itimer_interval_us, timers.interval_us, sizeof(timers.interval_us));
	buf_free(&timers.posix);
	if (remote_end(&r, failed ? NULL : e))
		return -1;
	return failed ? -1 : 0;
}

static int write_auxv_and_vdso(struct dump *d, struct image_process *ip, struct err *e)
{
	cleanup_free char *path = xasprintf("/proc/%d/auxv", d->process->task);
	cleanup_free char *auxv = NULL;
	cleanup_free char *vdso = xmalloc(d->process->vdso_size);
	size_t size;

	if (read_file(path, &auxv, &size, e) ||
		tracee_read(
			d->process->mem_fd, d->process->vdso, vdso, d->process->vdso_size, e))
		return -1;
	image_writer_note(d->writer, IMAGE_NOTE_AUXV, auxv, size);
	image_writer_note(d->writer, IMAGE_NOTE_VDSO, vdso, d->process->vdso_size);
	image_writer_core_note(d->writer, "CORE", 6 /* NT_AUXV */, auxv, size);
	ip->vdso_start = d->process->vdso;
	ip->vdso_size = d->process->vdso_size;
	return 0;
}

/* Threads can be put into cgroups one by one (version 1, and threaded ones of version 2). NULL:
 * this kernel has none. */
static char *cgroups_of(const struct process *p, pid_t tid)
{
	cleanup_free char *path = xasprintf("/proc/%d/task/%d/cgroup", p->pid, tid);
	char *text = NULL;
	size_t size;

	return read_file(path, &text, &size, NULL) ? NULL : text;
}

static int refuse_apart(const struct process *p, struct err *e)
{
	cleanup_free char *first = p->thread_count > 1 ? cgroups_of(p, p->task) : NULL;

	for (size_t i = 1; first && i < p->thread_count; i++) {
		pid_t tid = p->threads[i].tracee.tid;
		cleanup_free char *its = cgroups_of(p, tid);

		if (!its || strcmp(its, first))
			return err_set(e, 0,
				"thread %d of process %d (%s) is in a cgroup of its own, which "
				"is not supported",
				tid, p->pid, p->comm);
	}
	return 0;
}

static int write_cgroups(struct dump *d, struct err *e)
{
	cleanup_buf struct buf text = {0};

	if (refuse_apart(d->process, e) ||
		cgroup_read(d->process->task, d->own->cgroup, &text, e))
		return -1;
	if (text.len)
		image_writer_note(d->writer, IMAGE_NOTE_CGROUPS, text.data, text.len);
	return 0;
}

static int write_core_process_note(struct dump *d, const char *status, struct err *e)
{
	cleanup_free char *path = xasprintf("/proc/%d/cmdline", d->process->task);
	cleanup_free char *args = NULL;
	size_t size;

	if (read_file(path, &args, &size, e))
		return -1;
	core_note_process(d, status, args, size);
	return 0;
}

/* Not with the SIGCONT among its pending signals: what stops a process takes that away, and it
 * would wait for another for ever. So this is to be asked when those have been read. */
static bool is_stopped(const struct process *p)
{
	return (p->threads[0].tracee.group_stopped || p->stop_owed) &&
	       !procfs_is_pending(p->pid, SIGCONT);
}

/* Whether a security module has another label for the process than for us. Without such a module there is nothing to
 * be read. */
static bool has_own_label(const struct dump *d)
{
	cleanup_free char *path = xasprintf("/proc/%d/attr/current", d->process->task);
	cleanup_free char *label = NULL;
	size_t size;

	if (!d->own->label)
		return false;
	return read_file(path, &label, &size, NULL) || strcmp(d->own->label, label);
}

int dump_process(struct dump *d, struct err *e)
{
	struct process *p = d->process;
	cleanup_free char *status = procfs_status(p->pid, p->task, e);
	struct image_thread first = {.tid = p->threads[0].vtid};
	struct image_process ip = {0};

	if (!status)
		return -1;
	if (run_remote(d, status_number(status, "VmLck", 10), &ip, &first, e))
		return err_prefix(e, "cannot save process %d (%s)", p->pid, p->comm);
	if (dump_threads(d, &first, e))
		return -1;
	ip.pid = p->vpid;
	ip.ppid = p->vparent;
	ip.pgid = status_last_number(status, "NSpgid");
	ip.sid = status_last_number(status, "NSsid");
	read_ids(status, &ip);
	write_groups(d, status);
	if (read_mm(d, &ip, e) || read_links(d, &ip, e) || read_limits(d, &ip, e) ||
		write_cgroups(d, e) || seccomp_dump(p, d->writer, e))
		return -1;
	if (read_proc_number(p->task, "personality", 16, &ip.personality))
		return err_set(e, errno, "cannot read the personality of process %d", p->pid);
	/* Not on every kernel; the default is 0. */
	(void)read_proc_number(p->task, "oom_score_adj", 10, &ip.oom_score_adj);
	(void)read_proc_number(p->task, "coredump_filter", 16, &ip.coredump_filter);
	dump_login_id(d);
	if (write_core_process_note(d, status, e) || write_auxv_and_vdso(d, &ip, e))
		return err_prefix(e, "cannot save process %d (%s)", p->pid, p->comm);
	if (is_stopped(p))
		ip.flags |= IMAGE_PROCESS_STOPPED;
	if (has_own_label(d))
		ip.flags |= IMAGE_PROCESS_LABELLED;
	image_writer_note(d->writer, IMAGE_NOTE_PROCESS, &ip, sizeof(ip));
	return 0;
}
