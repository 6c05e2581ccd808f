/*
 * image_chain.c - the other files that hold blocks of an image: more of the same checkpoint, other
 * processes' ones included, and those of checkpoints before it.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "ckpt/image_read_private.h"
#include "ckpt/trust.h"
#include "lib/util.h"

static bool is_plain_name(const char *name)
{
	return *name && !strchr(name, '/') && strcmp(name, ".") && strcmp(name, "..");
}

static int open_folder(
	int in, const char *folder, const char *name, const char *child, struct err *e)
{
	cleanup_fd int fd = -1;

	if (!is_plain_name(folder))
		return err_set(e, 0,
			"cannot open a parent checkpoint of %s: \"%s\" is not a name", child,
			name);
	fd = openat(in, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return err_set(e, errno, "cannot open parent checkpoint %s (needed by %s)",
			name, child);
	if (trust_check(fd, name, e) < 0)
		return -1;
	return steal_fd(&fd);
}

/* Open the directory of the parent checkpoint @name, which the checkpoint @child needs: of a
 * job's member, its folder in a checkpoint of the job. */
static int open_parent(int parent, const char *name, const char *child, struct err *e)
{
	const char *slash = strchr(name, '/');
	cleanup_free char *whole = slash ? strndup(name, slash - name) : NULL;
	cleanup_fd int fd = whole ? open_folder(parent, whole, name, child, e) : -1;

	if (!whole)
		return open_folder(parent, name, name, child, e);
	return fd < 0 ? -1 : open_folder(fd, slash + 1, name, child, e);
}

static bool is_own(const struct image_chain *chain, size_t index)
{
	return !memcmp(chain[index].checkpoint_id, chain[0].checkpoint_id,
		sizeof(chain[0].checkpoint_id));
}

/* The name of the process's file that entry @index is about; @own: that of @img. */
static const char *name_in_chain(const struct image *img, size_t index, const char *own)
{
	const uint32_t *names;
	size_t count;

	names = image_note_array(img, IMAGE_NOTE_CHAIN_NAMES, uint32_t, &count);
	return index < count && names[index] ? image_string(img, names[index]) : own;
}

/* Open @file in @dir, which is that of @link's checkpoint. */
static int open_file(struct image *img, struct image *source, const struct image_chain *link,
	int dir, const char *file, struct err *e)
{
	enum image_file_kind kind = link->file ? IMAGE_FILE_BLOCKS : img->super.file_kind;
	uint8_t head[IMAGE_HEAD_SIZE];

	source->fd = openat(dir, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (source->fd < 0)
		return err_set(e, errno, "cannot open %s, which has blocks of %s", source->path,
			img->path);
	return trust_check(source->fd, source->path, e) < 0 ||
			       image_read_head(source, kind, head, e) < 0
		       ? -1
		       : 0;
}

static int open_source(struct image *img, size_t index, const struct image_chain *chain,
	int own, int parent, const char *own_name, struct err *e)
{
	const struct image_chain *link = &chain[index];
	const char *first = name_in_chain(img, index, own_name);
	const char *child = image_string(img, chain[0].name);
	const char *name = image_string(img, link->name);
	struct image *source = &img->sources[index];
	cleanup_fd int dir =
		is_own(chain, index) ? dup(own) : open_parent(parent, name, child, e);
	cleanup_free char *file =
		link->file ? xasprintf(IMAGE_BLOCKS_FILE, first, link->file) : xstrdup(first);

	if (dir < 0)
		return is_own(chain, index) ? err_set(e, errno, "cannot open %s", child) : -1;
	source->path = xasprintf("%s/%s", name, file);
	if (open_file(img, source, link, dir, file, e) < 0)
		return -1;
	if (memcmp(source->super.checkpoint_id, chain[index].checkpoint_id,
		    sizeof(chain[index].checkpoint_id)))
		return image_bad(source, e,
			"it is not the checkpoint that %s was made from, though of that name",
			child);
	return 0;
}

/* Blocks of @x must lie among the blocks of the file that they are in. */
static int check_bounds(const struct image *img, const struct image_extent *x, struct err *e)
{
	const struct image *source = &img->sources[x->source];
	uint64_t size, offset = image_extent_place(img, x, &size);

	/* That the sum does not overflow was checked when @img was opened. */
	if (offset + size > source->super.meta_offset)
		return image_bad(img, e, "the extent at %#" PRIx64 " is outside of %s",
			x->address, source->path);
	return 0;
}

/* Where an image's chain is looked for. */
struct places {
	int dir, parent;
	const char *name;
};

static int need_source(
	struct image *img, uint32_t index, const struct places *places, struct err *e)
{
	const struct image_chain *chain;
	size_t count;

	chain = image_note_array(img, IMAGE_NOTE_CHAIN, struct image_chain, &count);
	return img->sources[index].fd >= 0 ? 0
					   : open_source(img, index, chain, places->dir,
						     places->parent, places->name, e);
}

static int need_table(
	struct image *img, uint32_t table, const struct places *places, struct err *e)
{
	return need_source(img, image_table_source(img, table), places, e) < 0
		       ? -1
		       : image_open_table(img, table, e);
}

int image_open_chain(struct image *img, int dir, int parent, const char *name, struct err *e)
{
	const struct places places = {dir, parent, name};
	size_t count = image_note_count(img, IMAGE_NOTE_CHAIN, sizeof(struct image_chain));

	BUG_ON(img->sources);
	img->sources = xcalloc(count, sizeof(*img->sources));
	img->source_count = count;
	for (size_t i = 0; i < count; i++)
		img->sources[i].fd = -1;
	for (size_t i = 0; i < img->extent_count; i++) {
		const struct image_extent *x = &img->extents[i];

		if (!x->source)
			continue;
		/* Only what an extent refers to: a process that is younger than a checkpoint of the chain has no file
		 * in it.
		 */
		if (need_source(img, x->source, &places, e) < 0 || check_bounds(img, x, e) < 0)
			return -1;
		if (x->hash_table && need_table(img, x->hash_table, &places, e) < 0)
			return -1;
	}
	return 0;
}
