/*
 * summary.c - the view that is shown without options: what the checkpoint is, its sizes, its
 * processes, what they share.
 */
#include <inttypes.h>
#include <string.h>

#include "supervisor/socket/connection_block.h"
#include "tools/inspect/contents.h"
#include "tools/inspect/gpu.h"
#include "tools/inspect/mpi_records.h"
#include "tools/inspect/names.h"
#include "tools/inspect/sharing.h"
#include "tools/inspect/text.h"
#include "tools/inspect/view.h"

int32_t view_pid(const struct checkpoint *c, size_t process)
{
	const struct image_process *p;
	size_t one;

	p = image_note_array(
		c->processes[process], IMAGE_NOTE_PROCESS, struct image_process, &one);
	return p->pid;
}

/* So many rows of a list are shown: all is to fit on one screen. */
#define ROWS 8

/* Memory of one tag and kind. */
struct memory_sum {
	uint64_t regions, mapped;
	struct tally tally;
};

#define TAGS  (IMAGE_TAG_GPU + 1)
#define KINDS (IMAGE_REGION_AIO + 1)

struct sums {
	struct memory_sum memory[TAGS][KINDS]; /* what has no name is at 0 */
	struct memory_sum total;
	struct tally objects; /* of the job file */
	size_t threads, fds;
};

static void add_region(
	struct memory_sum *s, const struct image *img, const struct image_region *r)
{
	struct tally t = contents_region_tally(img, r);

	s->regions++;
	s->mapped += r->end - r->start;
	s->tally.here += t.here;
	s->tally.elsewhere += t.elsewhere;
	s->tally.zero += t.zero;
}

static void sum_process(struct sums *s, const struct image *img)
{
	const struct image_region *r;
	size_t count;

	r = image_note_array(img, IMAGE_NOTE_REGIONS, struct image_region, &count);
	for (size_t i = 0; i < count; i++) {
		uint32_t tag = r[i].tag < TAGS ? r[i].tag : 0;
		uint32_t kind = r[i].kind < KINDS ? r[i].kind : 0;

		add_region(&s->memory[tag][kind], img, &r[i]);
		add_region(&s->total, img, &r[i]);
	}
	s->threads += image_note_count(img, IMAGE_NOTE_THREADS, sizeof(struct image_thread));
	s->fds += image_note_count(img, IMAGE_NOTE_FDS, sizeof(struct image_fd));
}

static struct sums sum_up(const struct checkpoint *c)
{
	size_t objects =
		image_note_count(c->job, IMAGE_NOTE_OBJECTS, sizeof(struct image_object));
	struct sums s = {0};

	for (size_t i = 0; i < c->process_count; i++)
		sum_process(&s, c->processes[i]);
	for (uint32_t i = 1; i <= objects; i++)
		contents_tally(c->job, i, 0, UINT64_MAX, &s.objects);
	return s;
}

/* ---- chain ---- */

/* Blocks of all files that lie in the checkpoint with the id of @link. */
static uint64_t blocks_in(const struct checkpoint *c, const struct image_chain *link)
{
	uint64_t blocks = 0;

	for (size_t f = 0; f <= c->process_count; f++) {
		const struct image *img = f ? c->processes[f - 1] : c->job;
		const struct image_chain *chain;
		size_t count;

		chain = image_note_array(img, IMAGE_NOTE_CHAIN, struct image_chain, &count);
		for (size_t i = 0; i < img->extent_count; i++) {
			const struct image_extent *x = &img->extents[i];

			if (image_extent_is_stored(x) && x->source && x->source < count &&
				!memcmp(chain[x->source].checkpoint_id, link->checkpoint_id,
					sizeof(link->checkpoint_id)))
				blocks += x->blocks;
		}
	}
	return blocks;
}

static const struct image_chain *chain_of(const struct checkpoint *c, size_t *count)
{
	return image_note_array(c->job, IMAGE_NOTE_CHAIN, struct image_chain, count);
}

/* All but the first file of one have entries of their own. */
static bool is_checkpoint(const struct image_chain *link)
{
	return !link->file;
}

/* Name of the checkpoint that this one was compared with; NULL for a full one. */
static const char *parent_name(const struct checkpoint *c)
{
	static const uint8_t none[16];
	const struct image_chain *chain;
	size_t count;

	if (!memcmp(c->info->parent_id, none, sizeof(none)))
		return NULL;
	chain = chain_of(c, &count);
	for (size_t i = 1; i < count; i++)
		if (!memcmp(chain[i].checkpoint_id, c->info->parent_id, sizeof(none)))
			return image_string(c->job, chain[i].name);
	return "unknown";
}

/* ---- text ---- */

#define STRING(c, field) image_string((c)->job, (c)->info->field)

static void origin_text(const struct checkpoint *c, struct buf *out)
{
	char when[TEXT_SIZE];

	text_line(out, "checkpoint  %s", c->path);
	text_line(out, "command     %s", STRING(c, command));
	text_line(out, "taken       %s, the program was stopped for %.1f ms",
		text_time(c->info->realtime_ns, when), c->info->pause_ns / 1e6);
	text_line(out, "on          %s, Linux %s, %s", STRING(c, hostname), STRING(c, kernel),
		STRING(c, cpu));
	text_line(out, "by          trecr %s, image version %u%s", STRING(c, version),
		c->job->super.version, c->info->flags & IMAGE_JOB_PORTABLE ? ", portable" : "");
}

static void chain_text(const struct checkpoint *c, struct buf *out)
{
	cleanup_buf struct buf line = {0};
	const struct image_chain *chain;
	size_t count, told = 0;

	chain = chain_of(c, &count);
	for (size_t i = 1; i < count; i++) {
		if (!is_checkpoint(&chain[i]) || told++ >= ROWS)
			continue;
		buf_printf(&line, "%s%s (%" PRIu64 " blocks)", told > 1 ? ", " : "",
			image_string(c->job, chain[i].name), blocks_in(c, &chain[i]));
	}
	if (told > ROWS)
		buf_printf(&line, " and %zu more", told - ROWS);
	if (line.len)
		text_line(out, "chain       %s", text_of(&line));
}

/* Whether these are locked just now is for nft(8) to say. */
static void kept_text(const struct checkpoint *c, struct buf *out)
{
	cleanup_free char *table = connection_block_name(c->info->job_id);
	size_t count = image_note_count(c->job, IMAGE_NOTE_TCP, sizeof(struct image_tcp));

	if (count)
		text_line(out,
			"kept        %zu connections to the outside, by table inet %s once the "
			"program is ended",
			count, table);
}

static void stored_text(const struct checkpoint *c, const struct sums *s, struct buf *out)
{
	uint64_t here = s->total.tally.here + s->objects.here;
	uint64_t elsewhere = s->total.tally.elsewhere + s->objects.elsewhere;
	char stored[TEXT_SIZE], memory[TEXT_SIZE];

	text_line(out, "stored      %s of %s that the program had made its own",
		text_bytes(c->info->stored_bytes, stored),
		text_bytes(c->info->memory_bytes, memory));
	if (!parent_name(c)) {
		text_line(out, "parent      none: a full checkpoint");
		return;
	}
	text_line(out, "parent      %s; %" PRIu64 " since the last full one", parent_name(c),
		c->info->depth);
	text_line(out,
		"changed     %" PRIu64 " blocks stored, %" PRIu64 " referenced, of %" PRIu64
		" (%.1f %%)",
		here, elsewhere, here + elsewhere,
		here + elsewhere ? 100.0 * here / (here + elsewhere) : 0.0);
	chain_text(c, out);
}

static void memory_row(
	struct table *t, const char *tag, const char *kind, const struct memory_sum *s)
{
	char mapped[TEXT_SIZE], here[TEXT_SIZE], elsewhere[TEXT_SIZE];

	table_cell(t, "%s", tag);
	table_cell(t, "%s", kind);
	table_cell(t, "%" PRIu64, s->regions);
	table_cell(t, "%s", text_bytes(s->mapped, mapped));
	table_cell(t, "%s", text_bytes(s->tally.here * IMAGE_BLOCK, here));
	table_cell(t, "%s", text_bytes(s->tally.elsewhere * IMAGE_BLOCK, elsewhere));
}

static void memory_text(const struct sums *s, struct buf *out)
{
	static const char *const heads[] = {
		"TAG", "MEMORY", "REGIONS", "MAPPED", "STORED", "EARLIER"};
	struct table t = {.columns = "llrrrr"};

	for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
		table_cell(&t, "%s", heads[i]);
	for (uint32_t tag = 0; tag < TAGS; tag++)
		for (uint32_t kind = 0; kind < KINDS; kind++)
			if (s->memory[tag][kind].regions)
				memory_row(&t, name_tag(tag), name_region_kind(kind),
					&s->memory[tag][kind]);
	memory_row(&t, "", "all", &s->total);
	table_end(&t, out);
}

/* Shared memory, pipes and what else the processes have in common, by kind. */
static void objects_text(const struct checkpoint *c, struct buf *out)
{
	static const char *const heads[] = {"OBJECTS", "NUMBER", "SIZE", "STORED", "EARLIER"};
	struct table t = {.columns = "lrrrr"};
	const struct image_object *o;
	size_t count;

	o = image_note_array(c->job, IMAGE_NOTE_OBJECTS, struct image_object, &count);
	if (!count)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
		table_cell(&t, "%s", heads[i]);
	for (uint32_t kind = 0; kind < IMAGE_OBJECT_KINDS; kind++) {
		char size[TEXT_SIZE], here[TEXT_SIZE], elsewhere[TEXT_SIZE];
		struct memory_sum s = {0};

		for (size_t i = 0; i < count; i++) {
			if (o[i].kind != kind)
				continue;
			s.regions++;
			s.mapped += o[i].size;
			contents_tally(c->job, i + 1, 0, UINT64_MAX, &s.tally);
		}
		if (!s.regions)
			continue;
		table_cell(&t, "%s", name_object_kind(kind));
		table_cell(&t, "%" PRIu64, s.regions);
		table_cell(&t, "%s", text_bytes(s.mapped, size));
		table_cell(&t, "%s", text_bytes(s.tally.here * IMAGE_BLOCK, here));
		table_cell(&t, "%s", text_bytes(s.tally.elsewhere * IMAGE_BLOCK, elsewhere));
	}
	table_end(&t, out);
}

static const struct image_process *process_of(const struct checkpoint *c, size_t i)
{
	size_t one;

	return image_note_array(
		c->processes[i], IMAGE_NOTE_PROCESS, struct image_process, &one);
}

static const char *comm_of(const struct checkpoint *c, size_t i)
{
	const struct image_job_process *p;
	size_t count;

	p = image_note_array(c->job, IMAGE_NOTE_PROCESSES, struct image_job_process, &count);
	return i < count ? image_string(c->job, p[i].comm) : "";
}

static void processes_text(const struct checkpoint *c, struct buf *out)
{
	static const char *const heads[] = {"PID", "PPID", "NAME", "THREADS", "FDS", "PROGRAM"};
	struct table t = {.columns = "rrlrrl"};

	for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
		table_cell(&t, "%s", heads[i]);
	for (size_t i = 0; i < c->process_count && i < ROWS; i++) {
		const struct image_process *p = process_of(c, i);
		const struct image *img = c->processes[i];
		cleanup_buf struct buf shared = {0};

		sharing_text(c, i, &shared);
		table_cell(&t, "%d", p->pid);
		table_cell(&t, "%d", p->ppid);
		table_cell(&t, "%s", comm_of(c, i));
		table_cell(&t, "%zu",
			image_note_count(img, IMAGE_NOTE_THREADS, sizeof(struct image_thread)));
		table_cell(&t, "%zu",
			image_note_count(img, IMAGE_NOTE_FDS, sizeof(struct image_fd)));
		table_cell(&t, "%s%s%s%s%s", image_string(img, p->exe),
			p->flags & IMAGE_PROCESS_STOPPED ? " (stopped)" : "",
			shared.len ? " (" : "", text_of(&shared), shared.len ? ")" : "");
	}
	table_end(&t, out);
	if (c->process_count > ROWS)
		text_line(out, "  and %zu more", c->process_count - ROWS);
}

void summary_text(const struct checkpoint *c, struct buf *out)
{
	struct sums s = sum_up(c);

	origin_text(c, out);
	stored_text(c, &s, out);
	text_line(out, "processes   %zu, with %zu thread%s and %zu descriptor%s",
		c->process_count, s.threads, s.threads == 1 ? "" : "s", s.fds,
		s.fds == 1 ? "" : "s");
	kept_text(c, out);
	processes_text(c, out);
	for (size_t i = 0; i < c->process_count && i < ROWS; i++)
		gpu_text(c, i, out);
	for (size_t i = 0; i < c->process_count && i < ROWS; i++)
		mpi_text(c, i, out);
	memory_text(&s, out);
	objects_text(c, out);
}

/* ---- JSON ---- */

static void id_json(const uint8_t id[16], const char *key, struct json *j)
{
	char text[2 * 16 + 1];

	json_text(j, key, text_hex(id, 16, text));
}

static void sizes_json(const struct tally *t, struct json *j)
{
	json_number(j, "stored_bytes", t->here * IMAGE_BLOCK);
	json_number(j, "referenced_bytes", t->elsewhere * IMAGE_BLOCK);
	json_number(j, "zero_bytes", t->zero * IMAGE_BLOCK);
}

static void kept_json(const struct checkpoint *c, struct json *j)
{
	cleanup_free char *table = connection_block_name(c->info->job_id);
	size_t count = image_note_count(c->job, IMAGE_NOTE_TCP, sizeof(struct image_tcp));

	json_number(j, "kept_connections", count);
	json_text(j, "kept_by_table", count ? table : NULL);
}

static void origin_json(const struct checkpoint *c, struct json *j)
{
	const struct image_job *info = c->info;

	json_text(j, "path", c->path);
	json_text(j, "command", STRING(c, command));
	json_real(j, "time", info->realtime_ns / 1000000 / 1e3);
	json_real(j, "pause_ms", info->pause_ns / 1e6);
	json_text(j, "hostname", STRING(c, hostname));
	json_text(j, "kernel", STRING(c, kernel));
	json_text(j, "cpu", STRING(c, cpu));
	json_text(j, "version", STRING(c, version));
	json_number(j, "image_version", c->job->super.version);
	json_bool(j, "portable", info->flags & IMAGE_JOB_PORTABLE);
	json_number(j, "sequence", info->sequence);
	json_number(j, "depth", info->depth);
	id_json(info->job_id, "job_id", j);
	id_json(c->job->super.checkpoint_id, "checkpoint_id", j);
	json_text(j, "parent", parent_name(c));
	json_number(j, "memory_bytes", info->memory_bytes);
	json_number(j, "stored_bytes", info->stored_bytes);
	kept_json(c, j);
}

static void chain_json(const struct checkpoint *c, struct json *j)
{
	const struct image_chain *chain;
	size_t count;

	chain = chain_of(c, &count);
	json_array(j, "chain");
	for (size_t i = 1; i < count; i++) {
		if (!is_checkpoint(&chain[i]))
			continue;
		json_object(j, NULL);
		json_text(j, "name", image_string(c->job, chain[i].name));
		id_json(chain[i].checkpoint_id, "checkpoint_id", j);
		json_number(j, "blocks", blocks_in(c, &chain[i]));
		json_end(j);
	}
	json_end(j);
}

static void memory_json(const struct sums *s, struct json *j)
{
	json_array(j, "memory");
	for (uint32_t tag = 0; tag < TAGS; tag++) {
		for (uint32_t kind = 0; kind < KINDS; kind++) {
			const struct memory_sum *m = &s->memory[tag][kind];

			if (!m->regions)
				continue;
			json_object(j, NULL);
			json_text(j, "tag", name_tag(tag));
			json_text(j, "kind", name_region_kind(kind));
			json_number(j, "regions", m->regions);
			json_number(j, "mapped_bytes", m->mapped);
			sizes_json(&m->tally, j);
			json_end(j);
		}
	}
	json_end(j);
}

static void objects_json(const struct checkpoint *c, struct json *j)
{
	const struct image_object *o;
	size_t count;

	o = image_note_array(c->job, IMAGE_NOTE_OBJECTS, struct image_object, &count);
	json_array(j, "objects");
	for (size_t i = 0; i < count; i++) {
		struct tally t = {0};

		contents_tally(c->job, i + 1, 0, UINT64_MAX, &t);
		json_object(j, NULL);
		json_text(j, "kind", name_object_kind(o[i].kind));
		json_text(j, "name", image_string(c->job, o[i].name));
		json_number(j, "size", o[i].size);
		sizes_json(&t, j);
		json_end(j);
	}
	json_end(j);
}

void summary_json(const struct checkpoint *c, struct json *j)
{
	struct sums s = sum_up(c);
	struct tally all = s.total.tally;

	all.here += s.objects.here;
	all.elsewhere += s.objects.elsewhere;
	all.zero += s.objects.zero;
	origin_json(c, j);
	json_object(j, "blocks");
	json_number(j, "stored", all.here);
	json_number(j, "referenced", all.elsewhere);
	json_number(j, "zero", all.zero);
	json_end(j);
	chain_json(c, j);
	memory_json(&s, j);
	objects_json(c, j);
}

void summary_process_json(const struct checkpoint *c, size_t process, struct json *j)
{
	const struct image_process *p = process_of(c, process);
	const struct image *img = c->processes[process];

	json_integer(j, "pid", p->pid);
	json_integer(j, "ppid", p->ppid);
	json_text(j, "name", comm_of(c, process));
	json_text(j, "program", image_string(img, p->exe));
	json_text(j, "directory", image_string(img, p->cwd));
	json_bool(j, "stopped", p->flags & IMAGE_PROCESS_STOPPED);
	json_number(j, "thread_count",
		image_note_count(img, IMAGE_NOTE_THREADS, sizeof(struct image_thread)));
	json_number(j, "region_count",
		image_note_count(img, IMAGE_NOTE_REGIONS, sizeof(struct image_region)));
	json_number(
		j, "fd_count", image_note_count(img, IMAGE_NOTE_FDS, sizeof(struct image_fd)));
	sharing_json(c, process, j);
	gpu_json(c, process, j);
	mpi_json(c, process, j);
}
