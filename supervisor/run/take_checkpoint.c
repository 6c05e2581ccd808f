/*
 * Each attempt at a checkpoint runs in a thread of its own: ptrace's relation is to the tracing thread, and
 * when that ends the kernel lets go of whatever is still attached, also of a tracee that does
 * not stop (a vfork parent, a dead file server) and so cannot be detached by hand. It is
 * started and awaited by the thread of the whole checkpoint, which brings to disk what the
 * attempt has written while the program runs on.
 */
#include "supervisor/run/take_checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "ckpt/store_dir.h"
#include "lib/limits.h"
#include "lib/notices.h"
#include "lib/test_hooks.h"
#include "supervisor/job/member_files.h"
#include "supervisor/job/checkpoint_part.h"
#include "supervisor/run/checkpoint_commit.h"
#include "supervisor/run/checkpoint_frozen.h"
#include "supervisor/run/checkpoint_work.h"
#include "supervisor/tree/freeze.h"
#include "supervisor/tree/thaw.h"

/* Pauses double: 0.6 s in all. */
#define ATTEMPTS_MAX   6
#define FIRST_PAUSE_NS 10000000

static void *trace_program(void *arg)
{
	struct checkpoint_work *w = arg;

	/* Short sleeps are to be short (remote_query.c); at worst they are not. */
	(void)prctl(PR_SET_TIMERSLACK, 1000);
	w->result = checkpoint_freeze_and_save(w);
	return NULL;
}

static void await_tracer(struct checkpoint_work *w, pthread_t thread)
{
	int r;

	for (pid_t freezer; (freezer = w->freezer) >= 0;) {
		if (freezer)
			freeze_unblock(freezer);
		/* Woken early: all the same. */
		sleep_ns(1000000);
	}
	r = pthread_join(thread, NULL);
	BUG_ON(r);
}

static int fail_to_start(struct err *e)
{
	bool too_many = errno == EAGAIN;

	err_set(e, errno, "cannot start a thread");
	if (too_many)
		err_append(e,
			" (the user may have no more processes and threads: raise ulimit -u, "
			"or "
			"pids.max of the control group, or try again when there are fewer)");
	return -1;
}

static int run_tracer(struct checkpoint_work *w)
{
	pthread_t thread;

	if (thread_start(&thread, trace_program, w))
		return fail_to_start(w->e);
	await_tracer(w, thread);
	thaw_await_ends(&w->ending);
	return w->result;
}

/* While the event loop keeps away from the program's processes. */
static int run_apart(struct checkpoint_work *w)
{
	int result;

	under_way_attach(w->under_way);
	result = run_tracer(w);
	under_way_detach(w->under_way);
	return result;
}

static int make_checkpoint(struct checkpoint_work *w)
{
	int result = run_apart(w);

	if (result || w->request->stop)
		return result;
	if (w->request->try_restart)
		w->made->pause_ns = w->info.pause_ns;
	else
		result = checkpoint_complete(w);
	if (!result)
		checkpoint_prune(w);
	return result;
}

static int attempt_checkpoint(struct checkpoint_taking *t, struct gpu_wait *gpu_wait)
{
	const struct checkpoint_request *request = t->request;
	struct supervisor *s = t->s;
	struct checkpoint_work w = {.s = s,
		.request = request,
		.under_way = &t->under_way,
		.made = &t->made,
		.gpu_wait = gpu_wait,
		.throttle = {.rate = request->rate},
		.e = t->e};
	int result;

	notices_clear();
	gpu_wait->restless = 0;
	if (!s->store || under_way_cancelled(&t->under_way, t->e) || checkpoint_work_begin(&w))
		return -1;
	result = make_checkpoint(&w);
	checkpoint_work_end(&w);
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
	return result;
}

static void await_test(unsigned attempts)
{
	const char *file = attempts ? NULL : test_tries_again();

	if (!file)
		return;
	close(open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	while (!access(file, F_OK))
		sleep_ns(1000000);
}

/* What stands in the way for a moment only, like a connection that is about to be accepted, is
 * to be tried again: the program is let run on a little. */
static bool try_again(
	const struct checkpoint_request *request, unsigned attempts, const struct err *e)
{
	const uint64_t pause_ns = FIRST_PAUSE_NS << attempts;

	if (e->remedy != ERR_TRY_AGAIN || attempts == ATTEMPTS_MAX ||
		(request->deadline_ns &&
			clock_ns(CLOCK_MONOTONIC) + pause_ns > request->deadline_ns))
		return false;
	await_test(attempts);
	sleep_ns(pause_ns);
	return true;
}

/* Once: whether all members are to try again, the coordinator decides. */
static int take_part(struct checkpoint_taking *t, struct gpu_wait *gpu_wait)
{
	const struct part *part = t->request->part;
	cleanup_free char *dir = xasprintf("%s" STORE_TMP, part->whole);
	struct supervisor *s = t->s;
	int result = -1;

	s->store = store_open_part(dir, part->sequence, s->job->rank, t->e);
	if (s->store)
		result = attempt_checkpoint(t, gpu_wait);
	store_close(s->store);
	s->store = NULL;
	return result;
}

static int take_whole(struct checkpoint_taking *t, struct gpu_wait *gpu_wait)
{
	struct supervisor *s = t->s;
	unsigned attempts = 0;
	int result = -1;

	if (!s->store)
		s->store = store_open(s->options.dir, s->job_id, NULL, t->e);
	while (s->store && (result = attempt_checkpoint(t, gpu_wait)) &&
		(gpu_wait->restless ? gpu_wait_again(gpu_wait, t->e)
				    : try_again(t->request, attempts++, t->e)))
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

/* Memory that is still being filled would be saved as it is, too, but by way of faults; the program
 * runs on meanwhile. When that is done the event loop hears of it. */
static int await_memory(struct checkpoint_taking *t)
{
	static const struct timespec moment = {.tv_nsec = 2000000};
	uint64_t deadline = t->request->deadline_ns;

	while (__atomic_load_n(&t->s->lazy, __ATOMIC_SEQ_CST)) {
		if (under_way_cancelled(&t->under_way, t->e))
			return -1;
		if (deadline && clock_ns(CLOCK_MONOTONIC) > deadline)
			return err_set(t->e, 0,
				"the time given for it was over before all memory of the last "
				"checkpoint had been brought back (trecr-restart --lazy)");
		(void)nanosleep(&moment, NULL);
	}
	return 0;
}

static int take_part_or_whole(struct checkpoint_taking *t, struct gpu_wait *gpu_wait)
{
	if (await_memory(t))
		return -1;
	return t->request->part ? take_part(t, gpu_wait) : take_whole(t, gpu_wait);
}

static void *take_checkpoint(void *arg)
{
	struct checkpoint_taking *t = arg;
	struct gpu_wait gpu_wait;
	struct rlimit own;

	limit_files_raise(&own);
	gpu_wait_begin(&gpu_wait, t->request->drain_ns, t->request->deadline_ns);
	t->result = take_part_or_whole(t, &gpu_wait);
	if (t->result)
		explain_lack_of_files(t->e);
	limit_files_put_back(&own);
	under_way_done(&t->under_way);
	return NULL;
}

int checkpoint_begin(struct checkpoint_taking *t, struct supervisor *s,
	const struct checkpoint_request *request, struct err *e)
{
	memset(t, 0, sizeof(*t));
	t->s = s;
	t->request = request;
	t->e = e;
	if (under_way_begin(&t->under_way, e))
		return -1;
	if (s->last.memory_bytes)
		t->under_way.sync_s_per_byte = s->last.sync_ns / 1e9 / s->last.memory_bytes;
	if (!thread_start(&t->thread, take_checkpoint, t))
		return 0;
	fail_to_start(e);
	under_way_end(&t->under_way);
	return -1;
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
