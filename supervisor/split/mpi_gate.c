/* mpi_gate.c - reads and writes that memory by process_vm_readv(2) and its like, which wait for nobody. */
#include "supervisor/split/mpi_gate.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/uio.h>

#include "lib/procfs.h"
#include "shared/launcher_variables.h"
#include "shared/records.h"
#include "supervisor/split/lower_half.h"

#define MAX_CALLS 4096
#define MAX_NAME  64
#define MAX_RANKS (1u << 24)

static int gate_lost(const struct mpi_gate *g, struct err *e)
{
	return err_with(
		e, ERR_TRY_AGAIN, "process %d has ended, or executes another program", g->pid);
}

static int gate_poke(
	const struct mpi_gate *g, uint64_t at, const void *data, size_t size, struct err *e)
{
	struct iovec local = {(void *)data, size}, remote = {(void *)at, size};

	if (process_vm_writev(g->pid, &local, 1, &remote, 1, 0) == (ssize_t)size)
		return 0;
	if (errno == ESRCH)
		return gate_lost(g, e);
	return err_set(e, errno, "cannot write memory of process %d", g->pid);
}

/* Where @pid keeps its struct mpi_state, 0: it has none. */
static uint64_t find_state(pid_t pid)
{
	struct records r;

	if (lower_peek(pid, RECORDS_LIVE, &r, sizeof(r)) || r.magic != RECORDS_MAGIC ||
		r.version != RECORDS_VERSION || r.lower != RECORDS_UP)
		return 0;
	return (uint64_t)r.mpi;
}

static int look_below(struct mpi_gate *g, pid_t pid, struct err *e)
{
	cleanup_free pid_t *children = NULL;
	uint64_t at = find_state(pid);
	size_t count = 0;

	if (at && g->pid)
		return err_set(
			e, 0, "two processes of one rank use MPI: %d and %d", g->pid, pid);
	if (at) {
		g->pid = pid;
		g->at = at;
	}
	/* What has ended is not looked at. */
	if (procfs_children(pid, &children, &count, NULL))
		return 0;
	for (size_t i = 0; i < count; i++)
		if (look_below(g, children[i], e))
			return -1;
	return 0;
}

int mpi_gate_find(struct mpi_gate *g, pid_t root, struct err *e)
{
	g->pid = 0;
	g->at = 0;
	return look_below(g, root, e);
}

int mpi_gate_read(struct mpi_gate *g, struct err *e)
{
	if (!g->pid)
		return 0;
	if (find_state(g->pid) != g->at ||
		lower_peek(g->pid, g->at, &g->s, offsetof(struct mpi_state, counts_lock)))
		return gate_lost(g, e);
	if (g->s.counts_used > MPI_COUNTS || g->s.calls > MAX_CALLS)
		return lower_damaged(g->pid, e);
	g->counts.len = 0;
	buf_grow(&g->counts, g->s.counts_used * sizeof(struct mpi_count));
	if (g->s.counts_used && lower_peek(g->pid, (uint64_t)g->s.counts, g->counts.data,
					g->s.counts_used * sizeof(struct mpi_count)))
		return gate_lost(g, e);
	g->counts.len = g->s.counts_used * sizeof(struct mpi_count);
	return lower_peek(g->pid, (uint64_t)g->s.messages, &g->m,
		       offsetof(struct mpi_messages, lock))
		       ? gate_lost(g, e)
		       : 0;
}

int mpi_gate_peers(
	const struct mpi_gate *g, size_t count, struct mpi_peer **peers, struct err *e)
{
	const struct mpi_count *c = buf_at(&g->counts, struct mpi_count, count);

	*peers = NULL;
	if (!c->number || !c->peers)
		return 0;
	if (c->size > MAX_RANKS)
		return lower_damaged(g->pid, e);
	*peers = xcalloc(c->size + 1, sizeof(**peers));
	if (!lower_peek(g->pid, (uint64_t)c->peers, *peers, c->size * sizeof(**peers)))
		return 0;
	free(*peers);
	*peers = NULL;
	return gate_lost(g, e);
}

int mpi_gate_set_due(
	const struct mpi_gate *g, size_t count, uint32_t peer, uint64_t due, struct err *e)
{
	const struct mpi_count *c = buf_at(&g->counts, struct mpi_count, count);
	uint64_t at = (uint64_t)c->peers + peer * sizeof(struct mpi_peer);

	return gate_poke(g, at + offsetof(struct mpi_peer, due), &due, sizeof(due), e);
}

int mpi_gate_set_meeting(const struct mpi_gate *g, uint32_t meeting, struct err *e)
{
	if (!g->pid)
		return 0;
	return gate_poke(g, (uint64_t)g->s.messages + offsetof(struct mpi_messages, meeting),
		&meeting, sizeof(meeting), e);
}

/* ---- what cannot be saved ---- */

/* Names stand one behind the other. */
char *mpi_gate_call_name(const struct mpi_gate *g, uint32_t call)
{
	size_t size = g->s.calls * MAX_NAME, at = 0;
	cleanup_free char *names = xcalloc(1, size + 1);
	struct iovec local = {names, size}, remote = {(void *)g->s.names, size};

	/* The end of the mapping may be nearer. */
	if (process_vm_readv(g->pid, &local, 1, &remote, 1, 0) <= 0)
		return xstrdup("a function of MPI");
	while (call-- && at < size)
		at += strlen(names + at) + 1;
	return xasprintf("%.*s", MAX_NAME, at < size ? names + at : "?");
}

static int check_called(const struct mpi_gate *g, struct err *e)
{
	cleanup_free uint8_t *called = xcalloc(1, g->s.calls + 1);

	if (g->s.calls && lower_peek(g->pid, (uint64_t)g->s.called, called, g->s.calls))
		return gate_lost(g, e);
	for (uint32_t i = 0; i < g->s.calls; i++) {
		cleanup_free char *name = NULL;

		if (called[i] != MPI_CALLED_UNSAVED)
			continue;
		name = mpi_gate_call_name(g, i);
		return err_set(e, 0,
			"process %d has called %s, and what that leaves in an MPI library that "
			"lies "
			"in the lower half (trecr-run --mpi=lower) cannot be saved yet",
			g->pid, name);
	}
	return 0;
}

static int check_counted(const struct mpi_gate *g, struct err *e)
{
	static const char *const reasons[] = {
		[MPI_TOO_MANY] = "more communicators than can be saved",
		[MPI_NO_MEMORY] = "a communicator, and there was no memory to count its "
				  "messages",
		[MPI_FOREIGN] =
			"a communicator with processes of another MPI_COMM_WORLD, which "
			"cannot be saved",
	};

	if (!g->s.uncounted)
		return 0;
	if (g->s.uncounted >= ARRAY_SIZE(reasons))
		return lower_damaged(g->pid, e);
	return err_set(e, 0, "process %d has made %s", g->pid, reasons[g->s.uncounted]);
}

int mpi_gate_check(const struct mpi_gate *g, bool of_job, struct err *e)
{
	if (!g->pid || !g->s.several)
		return 0;
	if (!of_job)
		return err_set(e, 0,
			"process %d is one of several ranks of MPI (trecr-run --mpi=lower), "
			"and can "
			"be saved with the others only: as a job, which trecr-run makes of "
			"ranks "
			"when -d names a directory and --alone is not given",
			g->pid);
	if (g->s.outsiders == MPI_OUTSIDERS_UNKNOWN)
		return err_set(e, 0,
			"process %d could not ask its trecr-run, when it called MPI_Init, "
			"whether all ranks of the job run under one with the library in the "
			"lower half (--mpi=lower): without the variable " SUPERVISOR_VARIABLE
			", which trecr-run sets, or a free descriptor, it finds none",
			g->pid);
	if (g->s.outsiders)
		return err_set(e, 0,
			"process %d uses MPI together with ranks that did not, as it does, run "
			"under a trecr-run of this job with the library in the lower half "
			"(--mpi=lower) when it called MPI_Init; a job is saved if all ranks do",
			g->pid);
	return check_called(g, e) || check_counted(g, e) ? -1 : 0;
}

/* ---- the gate ---- */

int mpi_gate_keep_closed(struct mpi_gate *g, struct err *e)
{
	if (!g->pid)
		return 0;
	g->beat = g->beat == UINT32_MAX ? 1 : g->beat + 1;
	return gate_poke(
		g, g->at + offsetof(struct mpi_state, gate), &g->beat, sizeof(g->beat), e);
}

int mpi_gate_set_limit(struct mpi_gate *g, size_t count, uint64_t limit, struct err *e)
{
	uint64_t at = (uint64_t)g->s.counts + count * sizeof(struct mpi_count);

	return gate_poke(g, at + offsetof(struct mpi_count, limit), &limit, sizeof(limit), e);
}

void mpi_gate_open(struct mpi_gate *g)
{
	static const uint32_t open = 0;

	/* What has ended has no gate; what has executed another program since, none there. */
	if (g->beat && find_state(g->pid) == g->at)
		(void)gate_poke(
			g, g->at + offsetof(struct mpi_state, gate), &open, sizeof(open), NULL);
	g->beat = 0;
}

void mpi_gate_free(struct mpi_gate *g)
{
	buf_free(&g->counts);
}
