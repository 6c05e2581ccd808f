/*
 * job_view.c - what the ranks of a job have in common is shown once; what they say of one communicator is put
 * together.
 */
#include "tools/inspect/job_view.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/inspect/mpi_records.h"
#include "tools/inspect/text.h"

struct rank {
	const struct checkpoint *c;
	int32_t pid; /* of its process that uses MPI, else of its first */
	bool has_mpi;
	struct mpi_records mpi;
};

/* What all ranks together say of a communicator. */
struct communicator {
	uint64_t number, entered;
	uint32_t size, holders, waiting; /* threads that wait in front of a call */
	char call[sizeof((struct mpi_communicator){0}.call)];
};

struct job {
	struct rank *ranks;
	size_t count;
	struct buf communicators; /* struct communicator */
};

/* ---- put together ---- */

static struct rank look_at(const struct checkpoint *c)
{
	struct rank r = {.c = c};

	for (size_t i = 0; i < c->process_count && !r.has_mpi; i++) {
		const struct image_process *p;
		size_t one;

		p = image_note_array(
			c->processes[i], IMAGE_NOTE_PROCESS, struct image_process, &one);
		r.has_mpi = mpi_records_read(c, i, &r.mpi);
		if (r.has_mpi || !i)
			r.pid = p->pid;
	}
	return r;
}

static struct communicator *find_or_add(struct buf *all, const struct mpi_count *of)
{
	struct communicator new = {.number = of->number, .size = of->size};
	size_t count = buf_count(all, struct communicator);

	for (size_t i = 0; i < count; i++)
		if (buf_at(all, struct communicator, i)->number == of->number)
			return buf_at(all, struct communicator, i);
	buf_push(all, struct communicator, &new);
	return buf_at(all, struct communicator, count);
}

static void add_communicators(struct job *job, const struct rank *r)
{
	for (size_t i = 0; i < buf_count(&r->mpi.communicators, struct mpi_communicator); i++) {
		const struct mpi_communicator *from =
			buf_at(&r->mpi.communicators, struct mpi_communicator, i);
		struct communicator *to = find_or_add(&job->communicators, &from->count);

		to->holders++;
		to->waiting += from->count.parked;
		/* A rank that waits in front of a call knows the last one. */
		if (!*to->call || from->count.entered + from->count.parked > to->entered)
			memcpy(to->call, from->call, sizeof(to->call));
		if (from->count.entered > to->entered)
			to->entered = from->count.entered;
	}
}

static int by_number(const void *a, const void *b)
{
	const struct communicator *x = a, *y = b;

	return x->number < y->number ? -1 : x->number > y->number;
}

/* ---- shown ---- */

static const char *hostname_of(const struct checkpoint *c)
{
	return image_string(c->job, c->info->hostname);
}

static size_t count_nodes(const struct job *job)
{
	size_t nodes = 0;

	for (size_t i = 0; i < job->count; i++) {
		size_t before = 0;

		while (strcmp(hostname_of(job->ranks[before].c), hostname_of(job->ranks[i].c)))
			before++;
		nodes += before == i;
	}
	return nodes;
}

static void origin_line(const char *path, const struct job *job, struct buf *out)
{
	const struct image_job *first = job->ranks[0].c->info;
	char when[TEXT_SIZE], stored[TEXT_SIZE], memory[TEXT_SIZE];
	uint64_t pause = 0, here = 0, all = 0;
	size_t nodes = count_nodes(job);

	for (size_t i = 0; i < job->count; i++) {
		const struct image_job *info = job->ranks[i].c->info;

		pause = info->pause_ns > pause ? info->pause_ns : pause;
		here += info->stored_bytes;
		all += info->memory_bytes;
	}
	text_line(out, "job         %s", path);
	text_line(out, "taken       %s, the ranks were stopped for %.1f ms at most",
		text_time(first->realtime_ns, when), pause / 1e6);
	text_line(out, "stored      %s of %s that they had made their own",
		text_bytes(here, stored), text_bytes(all, memory));
	text_line(out, "ranks       %zu, on %zu node%s", job->count, nodes,
		nodes == 1 ? "" : "s");
}

static void rank_row(struct table *t, const struct rank *r, size_t number)
{
	const struct checkpoint *c = r->c;
	char stored[TEXT_SIZE];
	uint64_t calls = 0;

	table_cell(t, "%zu", number);
	table_cell(t, "%s", hostname_of(c));
	table_cell(t, "%d", r->pid);
	table_cell(t, "%zu", c->process_count);
	table_cell(t, "%s", text_bytes(c->info->stored_bytes, stored));
	table_cell(t, "%.1f ms", c->info->pause_ns / 1e6);
	for (size_t i = 0; i < buf_count(&r->mpi.communicators, struct mpi_communicator); i++)
		calls += buf_at(&r->mpi.communicators, struct mpi_communicator, i)
				 ->count.entered;
	if (r->has_mpi)
		table_cell(t, "%" PRIu64, calls);
	else
		table_cell(t, "-");
	table_cell(t, "%s", image_string(c->job, c->info->command));
}

static void ranks_table(const struct job *job, struct buf *out)
{
	static const char *const heads[] = {"RANK", "NODE", "PID", "PROCESSES", "STORED",
		"STOPPED", "COLLECTIVES", "COMMAND"};
	struct table t = {.columns = "rlrrrrrl"};

	for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
		table_cell(&t, "%s", heads[i]);
	for (size_t i = 0; i < job->count; i++)
		rank_row(&t, &job->ranks[i], i);
	table_end(&t, out);
}

static void communicators_table(const struct job *job, struct buf *out)
{
	static const char *const heads[] = {
		"COMMUNICATOR", "SIZE", "HELD BY", "COLLECTIVES", "LAST", "WAITING"};
	struct table t = {.columns = "lrrrlr"};
	size_t count = buf_count(&job->communicators, struct communicator);

	if (!count)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
		table_cell(&t, "%s", heads[i]);
	for (size_t i = 0; i < count; i++) {
		const struct communicator *comm =
			buf_at(&job->communicators, struct communicator, i);
		char text[MPI_NUMBER_TEXT];

		table_cell(&t, "%s", mpi_number_text(comm->number, text));
		table_cell(&t, "%" PRIu32, comm->size);
		table_cell(&t, "%" PRIu32, comm->holders);
		table_cell(&t, "%" PRIu64, comm->entered);
		table_cell(&t, "%s", *comm->call ? comm->call : "-");
		table_cell(&t, "%" PRIu32, comm->waiting);
	}
	table_end(&t, out);
}

void job_text(
	const char *path, struct checkpoint *const *members, size_t count, struct buf *out)
{
	struct job job = {.ranks = xcalloc(count, sizeof(*job.ranks)), .count = count};

	for (size_t i = 0; i < count; i++) {
		job.ranks[i] = look_at(members[i]);
		add_communicators(&job, &job.ranks[i]);
	}
	if (job.communicators.len)
		qsort(job.communicators.data,
			buf_count(&job.communicators, struct communicator),
			sizeof(struct communicator), by_number);
	origin_line(path, &job, out);
	ranks_table(&job, out);
	communicators_table(&job, out);
	for (size_t i = 0; i < count; i++)
		mpi_records_free(&job.ranks[i].mpi);
	buf_free(&job.communicators);
	free(job.ranks);
}
