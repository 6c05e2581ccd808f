/*
 * mapped_files_check.c - goes through the regions of all processes and checks each file once.
 */
#include "supervisor/memory/mapped_files_check.h"

#include <sys/mman.h>

#include "ckpt/image_names.h"
#include "ckpt/string_table.h"
#include "supervisor/fd/shm_file.h"
#include "supervisor/fd/trusted_path.h"
#include "supervisor/fd_kinds/saved_files_restore.h"
#include "supervisor/target/module.h"

struct check {
	const struct image *job;
	void (*notice)(const char *line);
	struct string_table done[2]; /* paths that have been looked at, shared ones apart */
	struct err *e;
};

/* Of processes that have much in common each file is looked at once. */
static bool is_first(struct string_table *done, const char *path)
{
	size_t before = done->used;

	string_table_add(done, path);
	return done->used > before;
}

/* A file that is open as well has a notice of its own. */
static bool is_open(const struct image *job, const char *path)
{
	const struct image_description *x;
	size_t count;

	x = image_note_array(job, IMAGE_NOTE_DESCRIPTIONS, struct image_description, &count);
	for (uint32_t n = 0; (n = image_description_named(job, path, n));)
		if (x[n - 1].kind == IMAGE_FD_REGULAR)
			return true;
	return false;
}

static int check_shared(
	struct check *k, const struct image_module *m, const char *path, bool writable)
{
	bool changed;

	/* Files that are the program's memory are made again, with its contents. */
	if (fd_shm_file_in(k->job, path))
		return 0;
	if (module_check_shared(m, path, writable, &changed, k->e))
		return -1;
	if (changed && k->notice && !is_open(k->job, path)) {
		cleanup_free char *line = xasprintf(
			"%s, a shared mapping, has changed since the checkpoint", path);

		k->notice(line);
	}
	return 0;
}

static int check_region(struct check *k, const struct image *img, const struct image_region *g)
{
	bool shared = g->kind == IMAGE_REGION_SHARED_FILE;
	const struct image_module *m;
	const char *path;
	size_t count;

	if (!shared && g->kind != IMAGE_REGION_FILE)
		return 0;
	m = image_note_array(img, IMAGE_NOTE_MODULES, struct image_module, &count);
	if (!g->module || g->module > count)
		return err_set(k->e, 0, "the image names a mapped file that it does not have");
	m += g->module - 1;
	path = image_string(img, m->path);
	/* What the checkpoint has the contents of comes back, however it has changed. */
	if (!is_first(&k->done[shared], path))
		return 0;
	if (fd_check_trusted(path, 0, k->e))
		return -1;
	if (fd_saved_in(k->job, path))
		return 0;
	return shared ? check_shared(k, m, path, g->max_prot & PROT_WRITE)
		      : module_check(m, path, k->e);
}

static int check_process(struct check *k, const struct image *img)
{
	const struct image_region *g;
	size_t count;

	g = image_note_array(img, IMAGE_NOTE_REGIONS, struct image_region, &count);
	for (size_t i = 0; i < count; i++)
		if (check_region(k, img, &g[i]))
			return -1;
	return 0;
}

int mapped_files_check(
	const struct checkpoint *c, void (*notice)(const char *line), struct err *e)
{
	struct check k = {.job = c->job, .notice = notice, .e = e};
	int failed = 0;

	for (size_t i = 0; i < c->process_count && !failed; i++)
		failed = check_process(&k, c->processes[i]);
	string_table_free(&k.done[0]);
	string_table_free(&k.done[1]);
	return failed;
}
