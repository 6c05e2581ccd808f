/*
 * trecr-inspect - what is in a checkpoint, whether it is whole, and what else can be made of
 * it.
 */
#include <libelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ckpt/store_dir.h"
#include "lib/opts.h"
#include "lib/progress.h"
#include "lib/util.h"
#include "tools/inspect/job_view.h"
#include "tools/inspect/text.h"
#include "tools/inspect/view.h"

#define TOOL "trecr-inspect"

static struct settings {
	bool regions, threads, fds, stack;
	bool verify, diff, prune, json, verbose;
	const char *core;
} settings;

#define FIELD(name) offsetof(struct settings, name)

static const struct opt view_rows[] = {
	{0, "regions", NULL, "the memory map, and what of it is stored", opt_flag,
		FIELD(regions)},
	{0, "threads", NULL, "threads: what they were doing, signals", opt_flag,
		FIELD(threads)},
	{0, "fds", NULL, "file descriptors", opt_flag, FIELD(fds)},
	{0, "stack", NULL, "the stack of every thread", opt_flag, FIELD(stack)},
	{0, "json", NULL, "the same, or the summary, as JSON", opt_flag, FIELD(json)},
	{0},
};

static const struct opt action_rows[] = {
	{0, "verify", NULL, "verify all checksums, also in parent checkpoints", opt_flag,
		FIELD(verify)},
	{0, "diff", NULL, "how the second of two images differs from the first", opt_flag,
		FIELD(diff)},
	{0, "core", "FILE", "write a plain core file; for several processes\nFILE.PID",
		opt_text, FIELD(core)},
	{0, "prune", NULL, "remove the checkpoints, unless another needs them", opt_flag,
		FIELD(prune)},
	{'v', "verbose", NULL, "say more on standard error", opt_flag, FIELD(verbose)},
	{0},
};

static const struct {
	size_t wanted; /* field of the settings */
	const struct view *view;
} views[] = {
	{FIELD(regions), &regions_view},
	{FIELD(threads), &threads_view},
	{FIELD(fds), &fds_view},
	{FIELD(stack), &stack_view},
};

static bool is_wanted(size_t view)
{
	return *(const bool *)((const char *)&settings + views[view].wanted);
}

static bool any_view(void)
{
	bool any = false;

	for (size_t i = 0; i < ARRAY_SIZE(views); i++)
		any |= is_wanted(i);
	return any;
}

/* ---- messages ---- */

static void print_notice(const char *line)
{
	cleanup_buf struct buf text = {0};

	progress_end();
	text_line(&text, TOOL ": %s", line);
	fputs(text_of(&text), stderr);
}

static void notice_verbosely(const char *what, const char *path)
{
	cleanup_free char *line = settings.verbose ? xasprintf("%s %s", what, path) : NULL;

	if (line)
		print_notice(line);
}

/* Most errors say already what cannot be done; the others get the image's name. */
static int fail_to(const char *what, const char *image, struct err *e)
{
	if (strncmp(e->msg, "cannot ", strlen("cannot ")))
		err_prefix(e, "cannot %s %s", what, image);
	print_notice(e->msg);
	return 1;
}

static int fail_to_read(const char *image, struct err *e)
{
	return fail_to("read", image, e);
}

static int print_buf(const struct buf *out)
{
	progress_end();
	/* An error shows below. */
	if (out->len)
		(void)fwrite(out->data, 1, out->len, stdout);
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	perror(TOOL ": cannot write to standard output");
	return 1;
}

/* ---- views ---- */

static void views_text(const struct checkpoint *c, struct buf *out)
{
	for (size_t i = 0; i < c->process_count; i++) {
		text_line(out, "process %d", view_pid(c, i));
		for (size_t v = 0; v < ARRAY_SIZE(views); v++)
			if (is_wanted(v))
				views[v].view->text(c, i, out);
	}
}

static void checkpoint_json(const struct checkpoint *c, struct json *j)
{
	json_object(j, NULL);
	summary_json(c, j);
	json_array(j, "processes");
	for (size_t i = 0; i < c->process_count; i++) {
		json_object(j, NULL);
		summary_process_json(c, i, j);
		for (size_t v = 0; v < ARRAY_SIZE(views); v++)
			if (is_wanted(v))
				views[v].view->json(c, i, j);
		json_end(j);
	}
	json_end(j);
	json_end(j);
}

/* The summary of a checkpoint that is no job's, or of a member. */
static int show_summary(const char *image, struct buf *out)
{
	struct err e = ERR_INIT;
	struct checkpoint *c = checkpoint_open(image, &e);

	if (!c)
		return fail_to_read(image, &e);
	notice_verbosely("reading", c->path);
	summary_text(c, out);
	checkpoint_close(c);
	return 0;
}

#define MEMBERS_SHOWN 8 /* in full */

/* What all members have in common, if they can be read, and then the first of them. */
static int show_job(const char *path, size_t count, struct buf *out)
{
	struct checkpoint **members = xcalloc(count, sizeof(*members));
	int status = 0;

	for (size_t rank = 0; rank < count; rank++) {
		cleanup_free char *image = xasprintf("%s/" STORE_PART "%zu", path, rank);
		struct err e = ERR_INIT;

		members[rank] = checkpoint_open(image, &e);
		if (!members[rank])
			status = fail_to_read(image, &e);
		else
			notice_verbosely("reading", members[rank]->path);
	}
	if (!status)
		job_text(path, members, count, out);
	for (size_t rank = 0; rank < count && rank < MEMBERS_SHOWN; rank++) {
		if (!members[rank])
			continue;
		if (out->len)
			buf_add(out, "\n", 1);
		summary_text(members[rank], out);
	}
	if (count > MEMBERS_SHOWN) {
		buf_add(out, "\n", 1);
		text_line(out, "and %zu more: %s/" STORE_PART "%d ...", count - MEMBERS_SHOWN,
			path, MEMBERS_SHOWN);
	}
	for (size_t rank = 0; rank < count; rank++)
		checkpoint_close(members[rank]);
	free(members);
	return status;
}

static int show_summaries(char **images, int count)
{
	cleanup_buf struct buf out = {0};
	int status = 0;

	for (int i = 0; i < count; i++) {
		cleanup_free char *whole = NULL;
		struct members m = {0};

		if (checkpoint_members(images[i], &whole, &m, NULL) > 0)
			status |= show_job(whole, m.count, &out);
		else
			status |= show_summary(images[i], &out);
		members_free(&m);
		if (i + 1 < count)
			buf_add(&out, "\n", 1);
	}
	return print_buf(&out) | status;
}

/* With several images, a line with its path goes before each. */
static void show_views(const struct checkpoint *c, bool several, struct buf *out)
{
	if (several)
		text_line(out, "%s", c->path);
	views_text(c, out);
}

static int show_all(char **images, int count)
{
	cleanup_buf struct buf out = {0};
	struct json j = {.out = &out};
	int status = 0;

	if (settings.json)
		json_array(&j, NULL);
	for (int i = 0; i < count; i++) {
		struct err e = ERR_INIT;
		struct checkpoint *c = checkpoint_open(images[i], &e);

		if (!c) {
			status = fail_to_read(images[i], &e);
			continue;
		}
		notice_verbosely("reading", c->path);
		if (settings.json)
			checkpoint_json(c, &j);
		else
			show_views(c, count > 1, &out);
		checkpoint_close(c);
		if (!settings.json && i + 1 < count)
			buf_add(&out, "\n", 1);
	}
	if (settings.json)
		json_end(&j);
	return print_buf(&out) | status;
}

/* ---- actions ---- */

static int verify_image(const char *image, struct buf *out)
{
	struct err e = ERR_INIT;
	struct checkpoint *c = checkpoint_open(image, &e);
	int r;

	if (!c)
		return fail_to_read(image, &e);
	notice_verbosely("checking", c->path);
	r = checkpoint_verify(c, &e);
	if (r == 0)
		text_line(out, "%s: good", c->path);
	checkpoint_close(c);
	return r < 0 ? fail_to_read(image, &e) : 0;
}

static int verify_all(char **images, int count)
{
	cleanup_buf struct buf out = {0};
	int status = 0;

	for (int i = 0; i < count; i++)
		status |= verify_image(images[i], &out);
	return print_buf(&out) | status;
}

static struct checkpoint *open_to_compare(const char *image, struct err *e)
{
	struct checkpoint *c = checkpoint_open(image, e);

	if (!c || !checkpoint_need_hashes(c, e))
		return c;
	checkpoint_close(c);
	return NULL;
}

static int print_diff(const char *from, const char *to)
{
	cleanup_buf struct buf out = {0};
	struct err e = ERR_INIT;
	struct checkpoint *a = open_to_compare(from, &e), *b;

	if (!a)
		return fail_to_read(from, &e);
	b = open_to_compare(to, &e);
	if (b)
		diff_text(a, b, &out);
	checkpoint_close(a);
	checkpoint_close(b);
	return b ? print_buf(&out) : fail_to_read(to, &e);
}

static int write_core(const struct checkpoint *c, size_t process, struct err *e)
{
	cleanup_free char *path = NULL;

	if (c->process_count == 1)
		path = xstrdup(settings.core);
	else
		path = xasprintf("%s.%d", settings.core, view_pid(c, process));
	if (core_write(c, process, path, print_notice, e) < 0)
		return -1;
	notice_verbosely("written:", path);
	return 0;
}

static int write_cores(const char *image)
{
	struct err e = ERR_INIT;
	struct checkpoint *c = checkpoint_open(image, &e);
	int r = 0;

	if (!c)
		return fail_to_read(image, &e);
	for (size_t i = 0; i < c->process_count && r == 0; i++)
		r = write_core(c, i, &e);
	checkpoint_close(c);
	return r < 0 ? fail_to_read(image, &e) : 0;
}

/* A checkpoint that only others of the list need can go when those are gone: so go round as
 * long as that helps. */
static int prune_images(char **images, int count)
{
	cleanup_free bool *removed = xcalloc(count, sizeof(*removed));
	int left = count, before;

	do {
		before = left;
		for (int i = 0; i < count; i++) {
			if (removed[i] || store_remove(images[i], NULL) < 0)
				continue;
			removed[i] = true;
			left--;
			notice_verbosely("removed", images[i]);
		}
	} while (left && left < before);
	for (int i = 0; i < count; i++) {
		struct err e = ERR_INIT;

		if (!removed[i] && store_remove(images[i], &e) < 0)
			fail_to("remove", images[i], &e);
	}
	return left ? 1 : 0;
}

/* ---- the command line ---- */

static int check_usage(const struct opts *o, int count)
{
	int actions = settings.verify + settings.diff + settings.prune + !!settings.core;

	if (actions > 1)
		return opts_misused(
			o, "--verify, --diff, --core and --prune exclude each other");
	if (actions && (any_view() || settings.json))
		return opts_misused(o, "--%s does not go with options that show something",
			settings.verify ? "verify"
			: settings.diff ? "diff"
			: settings.core ? "core"
					: "prune");
	if (!count)
		return opts_misused(o, "there must be an IMAGE");
	if (settings.diff && count != 2)
		return opts_misused(o, "--diff takes two images");
	if (settings.core && count != 1)
		return opts_misused(o, "--core takes one image");
	return -1;
}

/* The members' checkpoints take the place of a job's. Char pointers, the caller's. */
static void replace_jobs(char **images, int count, struct buf *all)
{
	for (int i = 0; i < count; i++) {
		cleanup_free char *whole = NULL;
		struct members m = {0};
		char *image = xstrdup(images[i]);

		if (checkpoint_members(images[i], &whole, &m, NULL) <= 0) {
			buf_push(all, char *, &image);
			continue;
		}
		free(image);
		for (size_t rank = 0; rank < m.count; rank++) {
			image = xasprintf("%s/" STORE_PART "%zu", whole, rank);
			buf_push(all, char *, &image);
		}
		members_free(&m);
	}
}

static int for_all_members(int f(char **, int), const struct operands *operands)
{
	cleanup_buf struct buf all = {0};
	int status;

	replace_jobs(operands->v, operands->count, &all);
	status = f(all.data, buf_count(&all, char *));
	for (size_t i = 0; i < buf_count(&all, char *); i++)
		free(*buf_at(&all, char *, i));
	return status;
}

int main(int argc, char *argv[])
{
	const struct opt_group groups[] = {
		{"Instead of the summary, show", view_rows, &settings},
		{"Do something else", action_rows, &settings},
		{0},
	};
	const struct opts opts = {
		.tool = TOOL,
		.operands = "IMAGE...",
		.about = "Show what is in a checkpoint. IMAGE is its directory; of a directory "
			 "that holds\ncheckpoints, the newest is shown.",
		.groups = groups,
		.usage_status = 1,
	};
	struct operands operands;
	int status = opts_parse(&opts, argc, argv, &operands);

	if (status < 0)
		status = check_usage(&opts, operands.count);
	if (status >= 0)
		return status;
	elf_version(EV_CURRENT);
	/* Until there is something to be said. */
	progress_begin(TOOL, settings.verify ? "checking" : "reading");
	if (settings.verify)
		return for_all_members(verify_all, &operands);
	if (settings.diff)
		return print_diff(operands.v[0], operands.v[1]);
	if (settings.core)
		return write_cores(operands.v[0]);
	if (settings.prune)
		return prune_images(operands.v, operands.count);
	if (settings.json || any_view())
		return for_all_members(show_all, &operands);
	return show_summaries(operands.v, operands.count);
}
