/*
 * freeze PID TIMES: stops all threads of the upper half outside the lower half, as often as
 * asked, looks whether they are, and lets them go. The protocol is in doc/split-process.md.
 */
#include <dirent.h>
#include <poll.h>
#include <sched.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "loader/windows.h"
#include "lower/table.h"

#define MAX_THREADS 256

static struct thread {
	pid_t tid;
	int lower; /* the lower half's own: runs on */
	int frozen;
	uint64_t patched; /* address of the return address that was replaced, or 0 */
	uint64_t original;
} threads[MAX_THREADS];
static int count;
static pid_t pid;
static struct crossing_info info;
static long patches, steps, bad;

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static uint64_t peek(uint64_t at)
{
	uint64_t v = 0;
	struct iovec local = {&v, 8}, remote = {(void *)at, 8};

	return process_vm_readv(pid, &local, 1, &remote, 1, 0) == 8 ? v : 0;
}

static void poke(uint64_t at, uint64_t v)
{
	struct iovec local = {&v, 8}, remote = {(void *)at, 8};

	if (process_vm_writev(pid, &local, 1, &remote, 1, 0) != 8)
		bad++;
}

static int in_crossing(const struct user_regs_struct *r)
{
	return r->rip >= info.text && r->rip < info.text_end;
}

/* Bottom of the thread's side stack, and how many calls are below; entries that longjmp has
 * left behind do not count. */
static uint64_t depth(const struct user_regs_struct *r, uint64_t *entries)
{
	int below = in_lower_window(r->fs_base);
	uint64_t record = peek(r->fs_base + (below ? info.slot_offset : info.current_offset));
	uint64_t top;

	if (!record)
		return 0;
	top = peek(record + info.top_offset);
	*entries = record + info.entries_offset;
	while (!below && top > *entries &&
		peek(top - info.entry_size + info.rsp_offset) <= r->rsp)
		top -= info.entry_size;
	return (top - *entries) / info.entry_size;
}

static int upper_at_last(struct thread *t, struct user_regs_struct *r)
{
	if (!t->patched || (r->rip != info.trap && r->rip != info.trap + 1))
		return 0;
	r->rip = t->original;
	t->patched = 0;
	ptrace(PTRACE_SETREGS, t->tid, 0, r);
	return 1;
}

/* The thread has stopped: is it frozen? If not it runs on. -1: it is gone. */
static int settle(struct thread *t)
{
	struct user_regs_struct r;
	uint64_t entries, n;
	int status, signal = 0;

	if (ptrace(PTRACE_GETREGS, t->tid, 0, &r))
		return -1;
	if (in_lower_window(r.rsp)) {
		t->lower = 1;
		ptrace(PTRACE_CONT, t->tid, 0, 0);
		return 0;
	}
	if (upper_at_last(t, &r))
		return 1;
	while (in_crossing(&r)) {
		steps++;
		ptrace(PTRACE_SINGLESTEP, t->tid, 0, signal);
		if (waitpid(t->tid, &status, __WALL) < 0 || !WIFSTOPPED(status))
			return -1;
		/* A signal that comes meanwhile is delivered: its handler is outside. */
		signal = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
		ptrace(PTRACE_GETREGS, t->tid, 0, &r);
		if (upper_at_last(t, &r))
			return 1;
	}
	if (signal) { /* not delivered yet, and the thread has left the crossing */
		ptrace(PTRACE_CONT, t->tid, 0, signal);
		return 0;
	}
	n = depth(&r, &entries);
	if (!n && !in_lower_window(r.fs_base))
		return 1;
	if (n && (!t->patched || peek(t->patched) != info.trap)) {
		t->patched = entries + info.return_offset;
		t->original = peek(t->patched);
		poke(t->patched, info.trap);
		patches++;
	}
	ptrace(PTRACE_CONT, t->tid, 0, 0);
	return 0;
}

static struct thread *find(pid_t tid)
{
	for (int i = 0; i < count; i++)
		if (threads[i].tid == tid)
			return &threads[i];
	if (count == MAX_THREADS)
		exit(2);
	threads[count].tid = tid;
	return &threads[count++];
}

static void interrupt_running(void)
{
	for (int i = 0; i < count; i++)
		if (!threads[i].lower && !threads[i].frozen)
			ptrace(PTRACE_INTERRUPT, threads[i].tid, 0, 0);
}

static int all_frozen(void)
{
	for (int i = 0; i < count; i++)
		if (!threads[i].lower && !threads[i].frozen)
			return 0;
	return 1;
}

static void one_event(void)
{
	int status;
	pid_t tid = waitpid(-1, &status, __WALL | WNOHANG);
	struct thread *t;
	int event;

	if (tid <= 0) {
		sched_yield();
		return;
	}
	t = find(tid);
	if (WIFEXITED(status) || WIFSIGNALED(status)) {
		t->lower = 1; /* no more of it */
		return;
	}
	event = status >> 16;
	if (t->lower) {
		ptrace(PTRACE_CONT, tid, 0, 0);
	} else if (!event && WSTOPSIG(status) != SIGTRAP) {
		ptrace(PTRACE_CONT, tid, 0, WSTOPSIG(status));
	} else {
		t->frozen = settle(t) == 1;
	}
}

static void freeze(void)
{
	double again = now_ms() + 2;

	interrupt_running();
	while (!all_frozen()) {
		one_event();
		if (now_ms() > again) {
			interrupt_running();
			again = now_ms() + 2;
		}
	}
}

static void look_and_thaw(void)
{
	for (int i = 0; i < count; i++) {
		struct thread *t = &threads[i];
		struct user_regs_struct r;
		uint64_t entries;

		if (t->lower || !t->frozen)
			continue;
		if (ptrace(PTRACE_GETREGS, t->tid, 0, &r) || in_lower_window(r.fs_base) ||
			in_lower_window(r.rip) || in_crossing(&r) || depth(&r, &entries))
			bad++;
	}
	for (int i = 0; i < count; i++) {
		if (threads[i].frozen)
			ptrace(PTRACE_CONT, threads[i].tid, 0, 0);
		threads[i].frozen = 0;
	}
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
	struct lower_table *table = (struct lower_table *)LOWER_SHARED; /* over there */
	struct iovec local = {&info, sizeof(info)}, remote = {&table->info, sizeof(info)};
	int times = atoi(argv[2]);
	double *took = calloc(times, sizeof(*took));
	struct dirent *e;
	char path[64];
	DIR *d;

	pid = atoi(argv[1]);
	if (process_vm_readv(pid, &local, 1, &remote, 1, 0) != sizeof(info)) {
		printf("no lower half\n");
		return 1;
	}
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	d = opendir(path);
	while (d && (e = readdir(d)))
		if (atoi(e->d_name) &&
			!ptrace(PTRACE_SEIZE, atoi(e->d_name), 0, PTRACE_O_TRACECLONE))
			find(atoi(e->d_name));
	for (int i = 0; i < times; i++) {
		double start = now_ms();

		freeze();
		took[i] = now_ms() - start;
		look_and_thaw();
		poll(NULL, 0, i % 2);
	}
	qsort(took, times, sizeof(*took), compare);
	fprintf(stderr,
		"%d freezes, median %.3f ms, worst %.3f; %ld return addresses replaced, %ld "
		"steps\n",
		times, took[times / 2], took[times - 1], patches, steps);
	printf(bad ? "%ld threads were not outside\n" : "all outside\n", bad);
	return bad != 0;
}
