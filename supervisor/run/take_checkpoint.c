/*
 * Each attempt runs in a thread of its own: ptrace's relation is to the tracing thread, and
 * when that ends the kernel lets go of whatever is still attached, also of a tracee that does
 * not stop (a vfork parent, a dead file server) and so cannot be detached by hand. It is
 * started and awaited by the thread of the whole checkpoint, which brings to disk what the
 * attempt has written while the program runs on.
 */
#include "supervisor/run/take_checkpoint.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <time.h>

#include "ckpt/store_dir.h"
#include "lib/limits.h"
#include "lib/notices.h"
#include "lib/phase.h"
#include "lib/procfs.h"
#include "supervisor/descriptors/descriptors.h"
#include "supervisor/job/between.h"
#include "supervisor/job/member_files.h"
#include "supervisor/job/part.h"
#include "supervisor/run/copies.h"
#include "supervisor/restore/restore.h"
#include "supervisor/restore/trial.h"
#include "supervisor/split/lower_half.h"
#include "supervisor/start/terminal.h"
#include "supervisor/state/cpu.h"
#include "supervisor/state/dump.h"
#include "supervisor/syscall/interrupted_call.h"
#include "supervisor/sysv/sysv.h"
#include "supervisor/target/copy.h"
#include "supervisor/target/module.h"
#include "supervisor/tree/freeze.h"
#include "supervisor/tree/frozen_tree.h"
#include "supervisor/tree/thaw.h"

#define FREEZE_LIMIT_NS 10000000000ull

/* Pauses double: 0.6 s in all. */
#define ATTEMPTS_MAX   6
#define FIRST_PAUSE_NS 10000000

struct checkpoint_work {
	struct supervisor *s;
	const struct checkpoint_request *request;
	struct under_way *under_way;
	struct freeze_patience *patience;
	struct throttle throttle;
	struct err *e;
	int result;
	_Atomic pid_t freezer; /* the thread that freezes the tree; -1: that is done */

	struct tree tree;
	uint64_t frozen_ns; /* when the freeze began; 0: not frozen */
	uint8_t id[16];
	uint64_t sequence;
	struct complete_checkpoint *made; /* filled when it is complete */
	int dirfd;
	struct checkpoint *parent;
	struct image_job info;

	struct image_writer *job;
	struct image_writer **writers; /* one for each living process of the tree */
	struct dump *dumps;
	size_t process_count;   /* of both */
	struct buf shared_runs; /* struct block_run: shared memory without a descriptor */
	struct fd_dump *fds;
	struct buf ending; /* pidfds of processes that have been killed */
};

static int out_of_time(void *context, struct err *e)
{
	struct checkpoint_work *w = context;

	if (!w->request->deadline_ns)
		return 0;
	if (clock_ns(CLOCK_MONOTONIC) >= w->request->deadline_ns)
		return err_set(e, 0, "the time given for the checkpoint is over");
	return w->request->foresee ? under_way_foresee(w->under_way, w->request->deadline_ns, e)
				   : 0;
}

/* Asked time and again while memory is written. */
static int given_up(void *context, struct err *e)
{
	struct checkpoint_work *w = context;

	return under_way_cancelled(w->under_way, e) || out_of_time(context, e) ? -1 : 0;
}

/* The parent to compare with, when this is to be an incremental checkpoint. */
static int open_parent(struct checkpoint_work *w)
{
	const struct supervisor_options *o = &w->s->options;

	if (!o->incremental || !w->s->last.path || w->s->last.doubtful)
		return 0;
	w->parent = checkpoint_open(w->s->last.path, NULL);
	/* Removed by hand, or damaged: then this one is a full one. */
	if (!w->parent)
		return 0;
	if (o->full_every && w->parent->info->depth + 1 >= o->full_every) {
		checkpoint_close(w->parent);
		w->parent = NULL;
	}
	return 0;
}

static int new_ids(struct checkpoint_work *w)
{
	static const uint8_t none[16];

	if (!memcmp(w->s->job_id, none, sizeof(none)) &&
		getrandom(w->s->job_id, sizeof(w->s->job_id), 0) != sizeof(w->s->job_id))
		return err_set(w->e, errno, "cannot make an id for the job");
	if (getrandom(w->id, sizeof(w->id), 0) != sizeof(w->id))
		return err_set(w->e, errno, "cannot make an id for the checkpoint");
	return 0;
}

/* Who becomes the parent of a process whose parent ends. */
static pid_t reaper(const struct checkpoint_work *w)
{
	return w->s->init ? w->s->init : getpid();
}

static int freeze_tree(struct checkpoint_work *w)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	uint64_t limit = now + FREEZE_LIMIT_NS + w->patience->ns;
	struct freeze_target target = {
		.root = w->s->root,
		.root_is_child = !w->s->init,
		.reaper = reaper(w),
		.former_children = w->s->former_children.data,
		.former_child_count = buf_count(&w->s->former_children, pid_t),
		.patience = w->patience,
	};
	int failed;

	if (w->request->deadline_ns && w->request->deadline_ns < limit)
		limit = w->request->deadline_ns;
	w->frozen_ns = now;
	w->info.realtime_ns = clock_ns(CLOCK_REALTIME);
	target.deadline_ns = limit;
	w->freezer = gettid();
	phase_now = PHASE_FREEZE;
	failed = freeze(&target, &w->tree, w->e);
	w->freezer = -1;
	return failed;
}

/* See what system call each thread is in the middle of. */
static int classify_threads(struct checkpoint_work *w)
{
	for (size_t i = 0; i < w->tree.count; i++) {
		struct process *p = w->tree.processes[i];

		for (size_t k = 0; k < p->thread_count; k++)
			if (syscall_classify(p, &p->threads[k], &w->s->sleeps, w->e))
				return -1;
	}
	return 0;
}

/* Resume the program. Calls that have to be entered again come first, while nothing else
 * in the process runs. */
static int thaw_tree(struct checkpoint_work *w)
{
	struct err *e = w->e;
	int failed = 0;

	phase_now = PHASE_THAW;
	if (w->fds)
		fd_dump_resume(w->fds);
	w->s->sleeps.len = 0;
	thaw_pay_stops(&w->tree);
	for (size_t i = 0; i < w->tree.count; i++) {
		struct process *p = w->tree.processes[i];

		for (size_t k = 0; k < p->thread_count; k++) {
			syscall_remember(&p->threads[k], &w->s->sleeps);
			failed |= syscall_thaw_in_place(
				p, &p->threads[k], &w->s->sleeps, failed ? NULL : e);
		}
	}
	failed |= thaw(&w->tree, failed ? NULL : e);
	if (w->frozen_ns)
		w->info.pause_ns = clock_ns(CLOCK_MONOTONIC) - w->frozen_ns;
	w->frozen_ns = 0;
	phase_now = PHASE_NONE;
	return failed ? -1 : 0;
}

static void write_chain(
	struct checkpoint_work *w, struct image_writer *writer, const struct image *parent)
{
	struct image_chain link = {
		.name = image_writer_string(writer, store_name(w->s->store))};
	const struct image_chain *old;
	size_t count;

	memcpy(link.checkpoint_id, w->id, sizeof(w->id));
	image_writer_note(writer, IMAGE_NOTE_CHAIN, &link, sizeof(link));
	if (!parent)
		return;
	old = image_note_array(parent, IMAGE_NOTE_CHAIN, struct image_chain, &count);
	for (size_t i = 0; i < count; i++) {
		link = old[i];
		link.name = image_writer_string(writer, image_string(parent, old[i].name));
		image_writer_note(writer, IMAGE_NOTE_CHAIN, &link, sizeof(link));
	}
}

/* The parent's file of the process with id @vpid, if it had one. */
static const struct image *parent_process(struct checkpoint_work *w, pid_t vpid)
{
	const struct image_job_process *list;
	size_t count;

	if (!w->parent)
		return NULL;
	list = image_note_array(
		w->parent->job, IMAGE_NOTE_PROCESSES, struct image_job_process, &count);
	for (size_t i = 0; i < count && i < w->parent->process_count; i++)
		if (list[i].pid == vpid)
			return w->parent->processes[i];
	return NULL;
}

static int write_runs(struct checkpoint_work *w, const struct buf *runs,
	struct image_writer *writer, const struct image *parent)
{
	cleanup_free uint32_t *source = NULL;
	size_t sources = 0;
	struct block_job job = {
		.runs = runs->data,
		.run_count = buf_count(runs, struct block_run),
		.writer = writer,
		.parent = parent,
		.pack = w->request->compress,
		.check_clean = getenv("TRECR_TEST_CHECK_CLEAN"),
		.cancelled = given_up,
		.cancel_context = w,
		.threads = w->request->threads,
		.throttle = &w->throttle,
		.done = &w->under_way->done_bytes,
	};

	if (parent)
		image_note_array(parent, IMAGE_NOTE_CHAIN, struct image_chain, &sources);
	source = xcalloc(sources, sizeof(*source));
	for (size_t i = 0; i < sources; i++)
		source[i] = i + 1; /* see write_chain() */
	job.parent_source = source;
	return blocks_write(&job, w->e);
}

static int dump_begin(struct checkpoint_work *w, size_t i)
{
	struct process *p = w->tree.processes[i];
	const struct image *parent = parent_process(w, p->vpid);
	cleanup_free char *name = xasprintf("%d", p->vpid);
	cleanup_free char *what = xasprintf("%s/%s", store_name(w->s->store), name);
	struct dump *d = &w->dumps[i];

	w->writers[i] =
		image_writer_open(w->dirfd, name, IMAGE_FILE_PROCESS, w->id, what, w->e);
	if (!w->writers[i])
		return -1;
	d->process = p;
	d->writer = w->writers[i];
	d->job_writer = w->job;
	d->fds = w->fds;
	d->modules = w->s->modules;
	d->deadline_ns = w->request->deadline_ns;
	d->portable = w->s->options.portable;
	d->namespace_of = reaper(w);
	d->clocks_of = w->tree.processes[0]->task;
	d->shared_runs = &w->shared_runs;
	if (w->s->options.incremental && w->s->options.dirty == DIRTY_UFFD)
		d->dirty = &w->s->dirty;
	if (parent)
		d->parent_id = w->parent->job->super.checkpoint_id;
	write_chain(w, d->writer, parent);
	return dump_refuse(d, w->e) || dump_prepare(d, w->e) ? -1 : 0;
}

static int dump_one(struct checkpoint_work *w, size_t i)
{
	struct dump *d = &w->dumps[i];
	bool shares = d->process->owner[IMAGE_SHARED_FILES] != i;
	size_t owner = d->process->owner[IMAGE_SHARED_MEMORY];
	int limit;

	d->memory_writer = owner == i ? NULL : w->writers[owner];
	if (dump_threads(d, w->e) || dump_process(d, w->e) ||
		dump_directories(d, &w->tree, w->e) || lower_fd_limit(d->process, &limit, w->e))
		return -1;
	return fd_dump_process(w->fds, d->process->pid, shares ? NULL : d->writer, limit, w->e);
}

/* A program that is to be ended has nothing to run on for. */
static bool wants_copies(const struct checkpoint_work *w)
{
	return w->request->fork && !w->request->stop;
}

static bool owns_memory(const struct checkpoint_work *w, size_t i)
{
	return w->tree.processes[i]->owner[IMAGE_SHARED_MEMORY] == i;
}

/* What memory there is. */
static int dump_one_memory(struct checkpoint_work *w, size_t i)
{
	struct dump *d = &w->dumps[i];

	if (!owns_memory(w, i))
		return 0;
	d->alone = true;
	for (size_t k = i + 1; k < w->process_count; k++)
		d->alone &= w->tree.processes[k]->owner[IMAGE_SHARED_MEMORY] != i;
	if (dump_memory(d, w->e) || dump_lower(d, w->e) ||
		copies_make(d, wants_copies(w), &w->tree, reaper(w), w->e))
		return -1;
	w->info.memory_bytes += d->memory_bytes;
	return given_up(w, w->e);
}

/* Its contents. */
static int write_memory(struct checkpoint_work *w)
{
	under_way_writes(w->under_way, w->info.memory_bytes);
	phase_now = PHASE_WRITE;
	for (size_t i = 0; i < w->process_count; i++) {
		struct dump *d = &w->dumps[i];

		if (owns_memory(w, i) &&
			write_runs(w, &d->runs, d->writer, parent_process(w, d->process->vpid)))
			return -1;
	}
	return write_runs(w, &w->shared_runs, w->job, NULL);
}

/* What the copies hold, while the program runs. */
static int write_copies(struct checkpoint_work *w)
{
	int failed = 0;

	/* Descriptors of the program's that have been fetched are not to be held on to. */
	fd_dump_free(w->fds);
	w->fds = NULL;
	phase_now = PHASE_COPIES;
	for (size_t i = 0; i < w->process_count; i++) {
		struct dump *d = &w->dumps[i];

		if (!d->copy || failed)
			continue;
		failed = write_runs(
			w, &d->copied_runs, d->writer, parent_process(w, d->copy->vpid));
		failed = copies_end(d, failed, w->e);
	}
	phase_now = PHASE_NONE;
	return failed;
}

/* The program's clocks: when all has been asked what time it has left, as what goes on from an
 * earlier time would end early by the difference. */
static int read_clocks(struct checkpoint_work *w)
{
	struct clock_shifts shifts;

	if (clocks_of(w->tree.processes[0]->task, &shifts, w->e))
		return -1;
	clocks_boot_id(w->info.boot_id);
	w->info.monotonic_shift_ns = shifts.monotonic_ns;
	w->info.boottime_shift_ns = shifts.boottime_ns;
	w->info.monotonic_ns = clock_ns(CLOCK_MONOTONIC) + w->tree.clocks.monotonic_ns;
	w->info.boottime_ns = clock_ns(CLOCK_BOOTTIME) + w->tree.clocks.boottime_ns;
	return 0;
}

/* What one process of a restart has open besides the program's files, at most: all images with
 * what they refer to, and what it maps (state/extra_fds.h). */
static uint64_t files_besides(const struct checkpoint_work *w)
{
	uint64_t chain = w->parent ? w->parent->info->depth + 2 : 1, most = 0;
	cleanup_free uint64_t *mapped = xcalloc(w->process_count, sizeof(*mapped));

	for (size_t i = 0; i < w->process_count; i++) {
		const struct dump *d = &w->dumps[i];
		uint64_t *sum = &mapped[d->process->owner[IMAGE_SHARED_FILES]];

		*sum += buf_count(&d->modules_used, struct image_module);
		if (*sum > most)
			most = *sum;
	}
	return chain * (1 + w->process_count) + most;
}

/* Everything that needs the program to stand still. */
static int snapshot(struct checkpoint_work *w)
{
	cleanup_free char *what = xasprintf("%s/%s", store_name(w->s->store), IMAGE_JOB_FILE);

	phase_now = PHASE_DUMP;
	w->job = image_writer_open(w->dirfd, IMAGE_JOB_FILE, IMAGE_FILE_JOB, w->id, what, w->e);
	if (!w->job)
		return -1;
	w->fds = fd_dump_new(w->job, w->request->tcp);
	fd_dump_tree(w->fds, &w->tree);
	fd_dump_save_files(w->fds, w->s->options.save_files, !w->request->stop);
	if (!w->s->modules)
		w->s->modules = module_cache_new();
	w->process_count = w->tree.living;
	w->writers = xcalloc(w->process_count, sizeof(*w->writers));
	w->dumps = xcalloc(w->process_count, sizeof(*w->dumps));
	w->info.process_count = w->tree.count;
	for (size_t i = 0; i < w->process_count; i++)
		if (dump_begin(w, i))
			return -1;
	if (dump_tree(&w->tree, reaper(w), w->job, w->e))
		return -1;
	for (size_t i = 0; i < w->process_count; i++)
		if (given_up(w, w->e) || dump_one(w, i))
			return -1;
	for (size_t i = 0; i < w->process_count; i++) {
		struct process *p = w->dumps[i].process;

		if (fd_dump_rings(w->fds, p, w->e) ||
			fd_dump_threads(w->fds, p->pid, p->lower, w->writers[i], w->e))
			return -1;
	}
	if (dump_tree_check_terminals(&w->tree, w->fds, w->e))
		return -1;
	for (size_t i = 0; i < w->process_count; i++)
		if (dump_one_memory(w, i))
			return -1;
	if (write_memory(w) || sysv_dump_rest(w->fds, &w->tree, w->e))
		return -1;
	phase_now = PHASE_DUMP;
	terminal_dump(w->s, w->fds, w->job);
	if (read_clocks(w) || fd_dump_finish(w->fds, files_besides(w), w->e))
		return -1;
	for (size_t i = 0; i < w->process_count; i++)
		dump_protect(&w->dumps[i]);
	return 0;
}

static void write_job_note(struct checkpoint_work *w)
{
	struct image_job *info = &w->info;
	cleanup_free char *cpu = cpu_model();
	struct utsname host;

	/* Fails for a bad address only. */
	(void)uname(&host);
	memcpy(info->job_id, w->s->job_id, sizeof(info->job_id));
	info->sequence = w->sequence;
	if (w->parent) {
		memcpy(info->parent_id, w->parent->job->super.checkpoint_id, 16);
		info->depth = w->parent->info->depth + 1;
		info->flags |= IMAGE_JOB_INCREMENTAL;
	}
	if (w->s->options.portable)
		info->flags |= IMAGE_JOB_PORTABLE;
	info->hostname = image_writer_string(w->job, host.nodename);
	info->kernel = image_writer_string(w->job, host.release);
	info->cpu = image_writer_string(w->job, cpu);
	info->version = image_writer_string(w->job, TRECR_VERSION);
	info->command = image_writer_string(w->job, w->s->command ? w->s->command : "");
	cpu_features(info->cpuid, &info->xfeatures);
	info->xsave_size = cpu_xsave_size();
	info->stored_bytes = image_writer_stored(w->job);
	for (size_t i = 0; i < w->process_count; i++)
		info->stored_bytes += image_writer_stored(w->writers[i]);
	image_writer_note(w->job, IMAGE_NOTE_JOB, info, sizeof(*info));
}

/* To disk, under its final name. The program may run meanwhile. */
static int commit(struct checkpoint_work *w, char **path)
{
	int failed = 0;

	phase_now = PHASE_COMMIT;
	write_chain(w, w->job, w->parent ? w->parent->job : NULL);
	write_job_note(w);
	for (size_t i = 0; i < w->process_count; i++) {
		failed |= image_writer_close(w->writers[i], true, failed ? NULL : w->e);
		w->writers[i] = NULL;
	}
	failed |= image_writer_close(w->job, true, failed ? NULL : w->e);
	w->job = NULL;
	return failed ? -1 : store_commit(w->s->store, path, w->e);
}

static void remember(struct checkpoint_work *w, char *path, uint64_t sync_ns)
{
	free(w->made->path);
	*w->made = (struct complete_checkpoint){
		.path = path,
		.sequence = w->sequence,
		.realtime_ns = w->info.realtime_ns,
		.pause_ns = w->info.pause_ns,
		.stored_bytes = w->info.stored_bytes,
		.memory_bytes = w->info.memory_bytes,
		.sync_ns = sync_ns,
	};
}

static void release(struct checkpoint_work *w)
{
	phase_now = PHASE_NONE;
	for (size_t i = 0; i < w->process_count; i++) {
		if (w->writers[i])
			image_writer_abort(w->writers[i]);
		copy_end(w->dumps[i].copy);
		dump_free(&w->dumps[i]);
	}
	if (w->job)
		image_writer_abort(w->job);
	if (w->fds)
		fd_dump_free(w->fds);
	buf_free(&w->shared_runs);
	free(w->writers);
	free(w->dumps);
	checkpoint_close(w->parent);
}

/* With other members of a job: wait for them. */
static int reached(struct checkpoint_work *w, const char *stage)
{
	return w->request->part ? part_reached(w->request->part, stage, w->e) : 0;
}

/* What this member shares with others of the job. */
static int check_between(struct checkpoint_work *w)
{
	cleanup_buf struct buf pids = {0};

	if (!w->request->part)
		return 0;
	for (size_t i = 0; i < w->tree.count; i++)
		buf_push(&pids, pid_t, &w->tree.processes[i]->pid);
	return between_check(pids.data, w->tree.count, w->e);
}

/* To disk. */
static int complete(struct checkpoint_work *w)
{
	struct part *part = w->request->part;
	uint64_t from = clock_ns(CLOCK_MONOTONIC), to;
	char *path = NULL;

	if (commit(w, &path))
		return -1;
	if (part && part_stored(part, w->id, w->s->job_id, w->e)) {
		free(path);
		return -1;
	}
	to = clock_ns(CLOCK_MONOTONIC);
	remember(w, path, to - from);
	if (w->request->foresee && to > w->request->deadline_ns)
		notice_add("the checkpoint came %.1f s after the deadline: the disk was slow",
			(to - w->request->deadline_ns) / 1e9);
	return 0;
}

/* A checkpoint too many does no harm; the next one tries again. */
static void prune(struct checkpoint_work *w)
{
	struct err e = ERR_INIT;

	(void)store_prune(w->s->store, w->s->job_id, w->s->options.keep, &e);
}

/* From here on the program ends when we do, or nobody would let its connections go on. */
static int hold_connections(struct checkpoint_work *w)
{
	if (!fd_dump_keeps(w->fds))
		return 0;
	return thaw_set_exitkill(&w->tree, w->e) || fd_dump_hold(w->fds, w->s->job_id, w->e)
		       ? err_prefix(w->e, "the checkpoint is complete, but the program resumes")
		       : 0;
}

static int try_restart(struct checkpoint_work *w, const struct checkpoint *c)
{
	switch (trial_run(c, w->request->deadline_ns, w->e)) {
	case RESTORE_FAILS:
		return -1;
	case RESTORE_UNKNOWN:
		notice_add("whether it can be restarted has not been tried: %s", w->e->msg);
		return 0;
	case RESTORE_WORKS:
		break;
	}
	return 0;
}

/* The program is ended only when what can be said of a restart has been looked at. */
static int check_restart(struct checkpoint_work *w)
{
	struct checkpoint *c = checkpoint_open(w->made->path, w->e);
	int failed = !c || restore_check(w->s, c, w->e) ||
		     (w->request->verify && checkpoint_read_back(c, w->e)) ||
		     (!w->request->no_try && try_restart(w, c));

	checkpoint_close(c);
	if (!failed && w->request->part)
		failed = part_tried(w->request->part, w->e);
	if (!failed)
		return 0;
	err_prefix(w->e,
		"the checkpoint %s is complete, but could not be restarted here, so the "
		"program resumes",
		w->made->path);
	w->made->doubtful = true;
	/* To take another one would change nothing. */
	w->e->remedy = ERR_FINAL;
	return CHECKPOINT_KEPT;
}

/* The program is about to be ended. */
static int point_of_no_return(struct checkpoint_work *w)
{
	if (!under_way_finally(w->under_way, w->e))
		return 0;
	err_append(w->e, "; the checkpoint %s is complete all the same", w->made->path);
	return CHECKPOINT_KEPT;
}

/* While attached. A program that is to be ended stays frozen until all is on disk. */
static int take_frozen(struct checkpoint_work *w)
{
	int failed = -1;

	if (freeze_tree(w) || classify_threads(w) || check_between(w) ||
		reached(w, PART_FROZEN) || snapshot(w) || reached(w, PART_WRITTEN) ||
		given_up(w, w->e))
		goto out_thaw;
	if (!w->request->stop)
		return thaw_tree(w) || write_copies(w) ? -1 : 0;
	w->info.pause_ns = clock_ns(CLOCK_MONOTONIC) - w->frozen_ns;
	if (complete(w) || (failed = check_restart(w)) || (failed = point_of_no_return(w)) ||
		(failed = hold_connections(w)))
		goto out_thaw;
	prune(w);
	thaw_kill(&w->tree, &w->ending);
	fd_dump_let_go(w->fds);
	return 0;

out_thaw:
	if (w->tree.count) {
		struct err *told = w->e;

		frozen_explain(&w->tree, told);
		w->e = NULL;
		thaw_tree(w);
		w->e = told;
	}
	return failed;
}

static void *run(void *arg)
{
	struct checkpoint_work *w = arg;

	/* Short sleeps are to be short (remote_query.c); at worst they are not. */
	(void)prctl(PR_SET_TIMERSLACK, 1000);
	w->result = take_frozen(w);
	return NULL;
}

static void join(struct checkpoint_work *w, pthread_t thread)
{
	static const struct timespec while_freezing = {.tv_nsec = 1000000};
	int r;

	for (pid_t freezer; (freezer = w->freezer) >= 0;) {
		if (freezer)
			freeze_unblock(freezer);
		/* Woken early: all the same. */
		(void)nanosleep(&while_freezing, NULL);
	}
	r = pthread_join(thread, NULL);
	BUG_ON(r);
}

static int run_in_thread(struct checkpoint_work *w)
{
	pthread_t thread;
	int r = thread_start(&thread, run, w);

	if (r)
		return err_set(w->e, r, "cannot start a thread");
	join(w, thread);
	thaw_await_ends(&w->ending);
	return w->result;
}

/* While the event loop keeps away from the program's processes. */
static int run_apart(struct checkpoint_work *w)
{
	int result;

	under_way_attach(w->under_way);
	result = run_in_thread(w);
	under_way_detach(w->under_way);
	return result;
}

static int attempt(struct checkpoint_taking *t, struct freeze_patience *patience)
{
	const struct checkpoint_request *request = t->request;
	struct supervisor *s = t->s;
	struct checkpoint_work w = {.s = s,
		.request = request,
		.under_way = &t->under_way,
		.made = &t->made,
		.patience = patience,
		.throttle = {.rate = request->rate},
		.e = t->e};
	int result = -1;

	notices_clear();
	patience->restless = 0;
	if (s->store && !under_way_cancelled(&t->under_way, t->e) && !new_ids(&w) &&
		!open_parent(&w) && !store_begin(s->store, &w.dirfd, &w.sequence, t->e)) {
		result = run_apart(&w);
		if (!result && !request->stop && !(result = complete(&w)))
			prune(&w);
		release(&w);
		if (result) {
			store_abort(s->store);
			dirty_forget(&s->dirty);
		} else {
			dirty_complete(&s->dirty, w.id);
		}
		/* A restart that follows at once is to find the directory free. */
		if (!result && request->stop) {
			store_close(s->store);
			s->store = NULL;
		}
	}
	return result;
}

/* What stands in the way for a moment only, like a connection that is about to be accepted, is
 * to be tried again: the program is let run on a little. */
static bool try_again(
	const struct checkpoint_request *request, unsigned attempts, const struct err *e)
{
	struct timespec pause = {.tv_nsec = FIRST_PAUSE_NS << attempts};

	if (e->remedy != ERR_TRY_AGAIN || attempts == ATTEMPTS_MAX ||
		(request->deadline_ns &&
			clock_ns(CLOCK_MONOTONIC) + pause.tv_nsec > request->deadline_ns))
		return false;
	nanosleep(&pause, NULL);
	return true;
}

/* Once: whether all members are to try again, who coordinates them decides. */
static int take_part(struct checkpoint_taking *t, struct freeze_patience *patience)
{
	const struct part *part = t->request->part;
	cleanup_free char *dir = xasprintf("%s" STORE_TMP, part->whole);
	struct supervisor *s = t->s;
	int result = -1;

	s->store = store_open_part(dir, part->sequence, s->job->rank, t->e);
	if (s->store)
		result = attempt(t, patience);
	store_close(s->store);
	s->store = NULL;
	return result;
}

static int take_whole(struct checkpoint_taking *t, struct freeze_patience *patience)
{
	struct supervisor *s = t->s;
	unsigned attempts = 0;
	int result = -1;

	if (!s->store)
		s->store = store_open(s->options.dir, s->job_id, NULL, t->e);
	while (s->store && (result = attempt(t, patience)) &&
		(patience_again(patience, t->e) || try_again(t->request, attempts++, t->e)))
		;
	return result;
}

/* Whatever it was that could not be opened. */
static void explain_lack_of_files(struct err *e)
{
	struct rlimit own;

	if (e->code != EMFILE || strstr(e->msg, "RLIMIT_NOFILE") ||
		getrlimit(RLIMIT_NOFILE, &own))
		return;
	err_append(e,
		" (during a checkpoint trecr-run has sockets and terminals of the program open "
		"as well, and no more than %llu descriptors are allowed: raise the hard limit, "
		"ulimit -Hn, before trecr-run)",
		(unsigned long long)own.rlim_cur);
}

static void *take(void *arg)
{
	struct checkpoint_taking *t = arg;
	struct freeze_patience patience;
	struct rlimit own;

	limit_files_raise(&own);
	patience_begin(&patience, t->request->drain_ns, t->request->deadline_ns);
	t->result = t->request->part ? take_part(t, &patience) : take_whole(t, &patience);
	if (t->result)
		explain_lack_of_files(t->e);
	limit_files_put_back(&own);
	under_way_done(&t->under_way);
	return NULL;
}

int checkpoint_begin(struct checkpoint_taking *t, struct supervisor *s,
	const struct checkpoint_request *request, struct err *e)
{
	int r;

	memset(t, 0, sizeof(*t));
	t->s = s;
	t->request = request;
	t->e = e;
	if (under_way_begin(&t->under_way, e))
		return -1;
	if (s->last.memory_bytes)
		t->under_way.sync_s_per_byte = s->last.sync_ns / 1e9 / s->last.memory_bytes;
	r = thread_start(&t->thread, take, t);
	if (!r)
		return 0;
	under_way_end(&t->under_way);
	return err_set(e, r, "cannot start a thread");
}

int checkpoint_end(struct checkpoint_taking *t)
{
	struct supervisor *s = t->s;
	int r = pthread_join(t->thread, NULL);

	BUG_ON(r);
	under_way_end(&t->under_way);
	if (t->made.path) {
		free(s->last.path);
		s->last = t->made;
	}
	if (t->result)
		s->checkpoints_failed++;
	else
		s->checkpoints_done++;
	return t->result;
}
