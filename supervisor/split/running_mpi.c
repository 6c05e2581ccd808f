/* running_mpi.c - by process_vm_readv(2) and process_vm_writev(2), for which the program need not be stopped. */
#include "supervisor/split/running_mpi.h"

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

static int program_lost(const struct running_mpi *m, struct err *e)
{
	return err_with(
		e, ERR_TRY_AGAIN, "process %d has ended, or executes another program", m->pid);
}

static int poke(
	const struct running_mpi *m, uint64_t at, const void *data, size_t size, struct err *e)
{
	struct iovec local = {(void *)data, size}, remote = {(void *)at, size};

	if (process_vm_writev(m->pid, &local, 1, &remote, 1, 0) == (ssize_t)size)
		return 0;
	if (errno == ESRCH)
		return program_lost(m, e);
	return err_set(e, errno, "cannot write memory of process %d", m->pid);
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

static int look_below(struct running_mpi *m, pid_t pid, struct err *e)
{
	cleanup_free pid_t *children = NULL;
	uint64_t at = find_state(pid);
	size_t count = 0;

	if (at && m->pid)
		return err_set(
			e, 0, "two processes of one rank use MPI: %d and %d", m->pid, pid);
	if (at) {
		m->pid = pid;
		m->at = at;
	}
	/* What has ended is not looked at. */
	if (procfs_children(pid, &children, &count, NULL))
		return 0;
	for (size_t i = 0; i < count; i++)
		if (look_below(m, children[i], e))
			return -1;
	return 0;
}

int running_mpi_find(struct running_mpi *m, pid_t root, struct err *e)
{
	m->pid = 0;
	m->at = 0;
	return look_below(m, root, e);
}

int running_mpi_read(struct running_mpi *m, struct err *e)
{
	if (!m->pid)
		return 0;
	if (find_state(m->pid) != m->at ||
		lower_peek(m->pid, m->at, &m->state, offsetof(struct mpi_state, counts_lock)))
		return program_lost(m, e);
	if (m->state.counts_used > MPI_COUNTS || m->state.calls > MAX_CALLS)
		return lower_damaged(m->pid, e);
	m->counts.len = 0;
	buf_grow(&m->counts, m->state.counts_used * sizeof(struct mpi_count));
	if (m->state.counts_used &&
		lower_peek(m->pid, (uint64_t)m->state.counts, m->counts.data,
			m->state.counts_used * sizeof(struct mpi_count)))
		return program_lost(m, e);
	m->counts.len = m->state.counts_used * sizeof(struct mpi_count);
	return lower_peek(m->pid, (uint64_t)m->state.messages, &m->messages,
		       offsetof(struct mpi_messages, lock))
		       ? program_lost(m, e)
		       : 0;
}

int running_mpi_peers(
	const struct running_mpi *m, size_t count, struct mpi_peer **peers, struct err *e)
{
	const struct mpi_count *c = buf_at(&m->counts, struct mpi_count, count);

	*peers = NULL;
	if (!c->number || !c->peers)
		return 0;
	if (c->size > MAX_RANKS)
		return lower_damaged(m->pid, e);
	*peers = xcalloc(c->size + 1, sizeof(**peers));
	if (!lower_peek(m->pid, (uint64_t)c->peers, *peers, c->size * sizeof(**peers)))
		return 0;
	free(*peers);
	*peers = NULL;
	return program_lost(m, e);
}

int running_mpi_set_due(
	const struct running_mpi *m, size_t count, uint32_t peer, uint64_t due, struct err *e)
{
	const struct mpi_count *c = buf_at(&m->counts, struct mpi_count, count);
	uint64_t at = (uint64_t)c->peers + peer * sizeof(struct mpi_peer);

	return poke(m, at + offsetof(struct mpi_peer, due), &due, sizeof(due), e);
}

int running_mpi_set_drain_round(
	const struct running_mpi *m, uint32_t drain_round, struct err *e)
{
	if (!m->pid)
		return 0;
	return poke(m, (uint64_t)m->state.messages + offsetof(struct mpi_messages, drain_round),
		&drain_round, sizeof(drain_round), e);
}

/* ---- what cannot be saved ---- */

/* Names stand one behind the other. */
char *running_mpi_call_name(const struct running_mpi *m, uint32_t call)
{
	size_t size = m->state.calls * MAX_NAME, at = 0;
	cleanup_free char *names = xcalloc(1, size + 1);
	struct iovec local = {names, size}, remote = {(void *)m->state.names, size};

	/* The end of the mapping may be nearer. */
	if (process_vm_readv(m->pid, &local, 1, &remote, 1, 0) <= 0)
		return xstrdup("a function of MPI");
	while (call-- && at < size)
		at += strlen(names + at) + 1;
	return xasprintf("%.*s", MAX_NAME, at < size ? names + at : "?");
}

static int check_called(const struct running_mpi *m, struct err *e)
{
	cleanup_free uint8_t *called = xcalloc(1, m->state.calls + 1);

	if (m->state.calls &&
		lower_peek(m->pid, (uint64_t)m->state.called, called, m->state.calls))
		return program_lost(m, e);
	for (uint32_t i = 0; i < m->state.calls; i++) {
		cleanup_free char *name = NULL;

		if (called[i] != MPI_CALLED_UNSAVED)
			continue;
		name = running_mpi_call_name(m, i);
		return err_set(e, 0,
			"process %d has called %s, and what that leaves in an MPI library that "
			"lies "
			"in the lower half (trecr-run --mpi=lower) cannot be saved yet",
			m->pid, name);
	}
	return 0;
}

static int check_counted(const struct running_mpi *m, struct err *e)
{
	static const char *const reasons[] = {
		[MPI_TOO_MANY] = "more communicators than can be saved",
		[MPI_NO_MEMORY] = "a communicator, and there was no memory to count its "
				  "messages",
		[MPI_FOREIGN] =
			"a communicator with processes of another MPI_COMM_WORLD, which "
			"cannot be saved",
	};

	if (!m->state.uncounted)
		return 0;
	if (m->state.uncounted >= ARRAY_SIZE(reasons))
		return lower_damaged(m->pid, e);
	return err_set(e, 0, "process %d has made %s", m->pid, reasons[m->state.uncounted]);
}

int running_mpi_check(const struct running_mpi *m, bool of_job, struct err *e)
{
	if (!m->pid || !m->state.several)
		return 0;
	if (!of_job)
		return err_set(e, 0,
			"process %d is one of several ranks of MPI (trecr-run --mpi=lower), "
			"and can "
			"be saved with the others only: as a job, which trecr-run makes of "
			"ranks "
			"when -d names a directory and --alone is not given",
			m->pid);
	if (m->state.outsiders == MPI_OUTSIDERS_UNKNOWN)
		return err_set(e, 0,
			"process %d could not ask its trecr-run, when it called MPI_Init, "
			"whether all ranks of the job run under one with the library in the "
			"lower half (--mpi=lower): without the variable " SUPERVISOR_VARIABLE
			", which trecr-run sets, or a free descriptor, it finds none",
			m->pid);
	if (m->state.outsiders)
		return err_set(e, 0,
			"process %d uses MPI together with ranks that did not, as it does, run "
			"under a trecr-run of this job with the library in the lower half "
			"(--mpi=lower) when it called MPI_Init; a job is saved if all ranks do",
			m->pid);
	return check_called(m, e) || check_counted(m, e) ? -1 : 0;
}

/* ---- the gate ---- */

int running_mpi_keep_gate_closed(struct running_mpi *m, struct err *e)
{
	if (!m->pid)
		return 0;
	m->heartbeat = m->heartbeat == UINT32_MAX ? 1 : m->heartbeat + 1;
	return poke(m, m->at + offsetof(struct mpi_state, gate), &m->heartbeat,
		sizeof(m->heartbeat), e);
}

int running_mpi_set_limit(struct running_mpi *m, size_t count, uint64_t limit, struct err *e)
{
	uint64_t at = (uint64_t)m->state.counts + count * sizeof(struct mpi_count);

	return poke(m, at + offsetof(struct mpi_count, limit), &limit, sizeof(limit), e);
}

void running_mpi_open_gate(struct running_mpi *m)
{
	static const uint32_t open = 0;

	/* What has ended has no gate; what has executed another program since, none there. */
	if (m->heartbeat && find_state(m->pid) == m->at)
		(void)poke(
			m, m->at + offsetof(struct mpi_state, gate), &open, sizeof(open), NULL);
	m->heartbeat = 0;
}

void running_mpi_free(struct running_mpi *m)
{
	buf_free(&m->counts);
}
