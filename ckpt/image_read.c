/*
 * image_read.c - opens and checks one file, looks up its notes, strings and extents, and reads
 * blocks, compressed ones too; what lies in files of earlier checkpoints is image_chain.c.
 */
#include "ckpt/image_read.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ckpt/hash.h"
#include "ckpt/image_names.h"
#include "ckpt/image_memory.h"
#include "ckpt/image_read_private.h"
#include "ckpt/pack.h"
#include "ckpt/trust.h"
#include "lib/util.h"

#define CHECK_BLOCKS 256u /* read at once by image_check_all() */

int image_bad_at(const char *path, struct err *e, const char *fmt, ...)
{
	char why[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	return err_with(e, ERR_DAMAGED, "cannot read image %s: %s", path, why);
}

static bool is_image(const uint8_t *head)
{
	const struct image_super *s = (const struct image_super *)(head + IMAGE_SUPER_OFFSET);

	return !memcmp(head, ELFMAG, SELFMAG) &&
	       !memcmp(s->magic, IMAGE_MAGIC, sizeof(s->magic));
}

/* For messages, too. */
static bool is_printable(const char *text, size_t size)
{
	for (size_t i = 0; i < size && text[i]; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
			return false;
	return memchr(text, 0, size);
}

static int find_maker(const uint8_t *head, struct image_maker *m)
{
	memcpy(m, head + IMAGE_MAKER_OFFSET, sizeof(*m));
	return is_image(head) && m->version[0] &&
			       is_printable(m->version, sizeof(m->version)) &&
			       is_printable(m->folder, sizeof(m->folder))
		       ? 0
		       : -1;
}

int image_read_maker(int fd, struct image_maker *m)
{
	uint8_t head[IMAGE_HEAD_SIZE];

	return pread(fd, head, sizeof(head), 0) == sizeof(head) ? find_maker(head, m) : -1;
}

static int not_for_us(
	const struct image *img, const uint8_t *head, const char *why, struct err *e)
{
	struct image_maker m;

	if (find_maker(head, &m))
		return image_bad(img, e, "%s", why);
	return image_bad(img, e, "%s: use trecr %s, which made it%s%s%s", why, m.version,
		*m.folder ? " (" : "", m.folder, *m.folder ? ")" : "");
}

/* What must be known before the checksum can be: another version may keep it elsewhere. */
static int check_identity(const struct image *img, const uint8_t *head, struct err *e)
{
	const struct image_super *s = &img->super;
	cleanup_free char *why = NULL;

	if (!is_image(head))
		return image_bad(img, e, "it is not a trecr image, or was never completed");
	if (s->version == IMAGE_VERSION)
		return 0;
	why = xasprintf("written by image format version %u, this trecr reads version %u",
		s->version, IMAGE_VERSION);
	return not_for_us(img, head, why, e);
}

static int check_head_hash(const struct image *img, const uint8_t *head, struct err *e)
{
	uint8_t copy[IMAGE_HEAD_SIZE];

	memcpy(copy, head, sizeof(copy));
	memset(copy + IMAGE_SUPER_OFFSET + offsetof(struct image_super, head_hash), 0,
		sizeof(img->super.head_hash));
	if (hash64(copy, sizeof(copy)) != img->super.head_hash)
		return image_bad(img, e, "its header is damaged (checksum)");
	return 0;
}

static int check_features(
	const struct image *img, const uint8_t *head, enum image_file_kind kind, struct err *e)
{
	const struct image_super *s = &img->super;
	cleanup_free char *why = NULL;

	if (s->file_kind != (uint32_t)kind)
		return image_bad(img, e, "it is of kind %u, not %u", s->file_kind, kind);
	if (s->incompat & ~(uint64_t)IMAGE_INCOMPAT_KNOWN) {
		why = xasprintf("it uses features that this trecr does not know (%#" PRIx64 ")",
			s->incompat & ~(uint64_t)IMAGE_INCOMPAT_KNOWN);
		return not_for_us(img, head, why, e);
	}
	if (s->block_size != IMAGE_BLOCK)
		return image_bad(
			img, e, "its block size is %u, not %u", s->block_size, IMAGE_BLOCK);
	return 0;
}

static int check_sizes(const struct image *img, uint64_t size, struct err *e)
{
	const struct image_super *s = &img->super;
	uint64_t expected;

	if (__builtin_add_overflow(s->file_size, s->hole_size, &expected))
		return image_bad(img, e, "its size is out of range");
	if (size < expected)
		return image_bad(img, e,
			"it is truncated (%" PRIu64 " bytes, %" PRIu64 " expected)", size,
			expected);
	if (size > expected)
		return image_bad(img, e,
			"it is too long (%" PRIu64 " bytes, %" PRIu64 " expected)", size,
			expected);
	if (s->meta_offset < IMAGE_HEAD_SIZE || s->meta_offset % IMAGE_BLOCK ||
		s->meta_offset > s->file_size || s->meta_size != s->file_size - s->meta_offset)
		return image_bad(img, e, "its metadata is out of place");
	return 0;
}

int image_read_head(struct image *img, enum image_file_kind kind, uint8_t *head, struct err *e)
{
	struct stat st;

	if (fstat(img->fd, &st) < 0)
		return err_set(e, errno, "cannot read image %s", img->path);
	if (!S_ISREG(st.st_mode))
		return image_bad(img, e, "it is not a regular file");
	if (st.st_size < (off_t)IMAGE_HEAD_SIZE)
		return image_bad(
			img, e, "it is truncated (%" PRIu64 " bytes)", (uint64_t)st.st_size);
	if (pread_all(img->fd, head, IMAGE_HEAD_SIZE, 0, img->path, e) < 0)
		return -1;
	memcpy(&img->super, head + IMAGE_SUPER_OFFSET, sizeof(img->super));
	if (check_identity(img, head, e) < 0 || check_head_hash(img, head, e) < 0 ||
		check_features(img, head, kind, e) < 0)
		return -1;
	return check_sizes(img, st.st_size, e);
}

struct image *image_open_fd(int fd, const char *path, enum image_file_kind kind, struct err *e)
{
	struct image *img = xcalloc(1, sizeof(*img));
	uint8_t head[IMAGE_HEAD_SIZE];

	img->fd = fd;
	img->path = xstrdup(path);
	if (image_read_head(img, kind, head, e) < 0 || image_read_meta(img, head, e) < 0) {
		image_close(img);
		return NULL;
	}
	image_names_make(img);
	return img;
}

struct image *image_open(
	int dirfd, const char *name, const char *path, enum image_file_kind kind, struct err *e)
{
	/* Without O_NONBLOCK a FIFO in the image's place would make us wait for ever. */
	cleanup_fd int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd < 0) {
		err_set(e, errno, "cannot open image %s", path);
		return NULL;
	}
	if (trust_check(fd, path, e) < 0)
		return NULL;
	return image_open_fd(steal_fd(&fd), path, kind, e);
}

void image_close(struct image *img)
{
	if (!img)
		return;
	for (size_t i = 0; i < img->source_count; i++) {
		if (img->sources[i].fd >= 0)
			close(img->sources[i].fd);
		free(img->sources[i].path);
	}
	for (int i = 0; i < IMAGE_NOTE_MAX; i++)
		image_memory_free((void *)img->notes[i].data);
	image_free_tables(img);
	image_names_free(img);
	free(img->sources);
	image_memory_free(img->meta);
	free(img->path);
	close(img->fd);
	free(img);
}

const char *image_string(const struct image *img, uint32_t offset)
{
	return offset < img->strings_size ? img->strings + offset : "";
}

const void *image_note(
	const struct image *img, enum image_note type, size_t size, size_t *count)
{
	BUG_ON(type >= IMAGE_NOTE_MAX);
	*count = img->notes[type].data ? img->notes[type].size / size : 0;
	return img->notes[type].data;
}

size_t image_note_count(const struct image *img, enum image_note type, size_t size)
{
	size_t count;

	(void)image_note(img, type, size, &count);
	return count;
}

/* Index of the first extent that does not lie before (@object, @address). */
static size_t lower_bound(const struct image *img, uint32_t object, uint64_t address)
{
	size_t low = 0, high = img->extent_count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct image_extent *x = &img->extents[mid];

		if (x->object < object || (x->object == object && x->address < address))
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

const struct image_extent *image_extents(
	const struct image *img, uint32_t object, size_t *count)
{
	size_t first = lower_bound(img, object, 0);
	size_t end = object < UINT32_MAX ? lower_bound(img, object + 1, 0) : img->extent_count;

	*count = end - first;
	return *count ? img->extents + first : NULL;
}

const struct image_extent *image_find(
	const struct image *img, uint32_t object, uint64_t address)
{
	size_t i = lower_bound(img, object, address);
	const struct image_extent *x = &img->extents[i];

	if (i < img->extent_count && x->object == object && x->address == address)
		return x;
	if (!i--)
		return NULL;
	x = &img->extents[i];
	if (x->object != object || (address - x->address) / IMAGE_BLOCK >= x->blocks)
		return NULL;
	return x;
}

const struct image_pack *image_pack_of(const struct image *img, const struct image_extent *x)
{
	const struct image_pack *packs;
	size_t count;

	packs = image_note_array(img, IMAGE_NOTE_PACKS, struct image_pack, &count);
	return x->kind == IMAGE_EXTENT_PACKED && x->file_offset < count ? &packs[x->file_offset]
									: NULL;
}

bool image_extent_is_elsewhere(const struct image *img, const struct image_extent *x)
{
	const struct image_chain *chain;
	size_t count;

	chain = image_note_array(img, IMAGE_NOTE_CHAIN, struct image_chain, &count);
	return x->source && x->source < count &&
	       memcmp(chain[x->source].checkpoint_id, img->super.checkpoint_id,
		       sizeof(img->super.checkpoint_id));
}

bool image_is_blocks_file(const char *name)
{
	return strchr(name, '.');
}

uint64_t image_extent_place(
	const struct image *img, const struct image_extent *x, uint64_t *size)
{
	const struct image_pack *pack = image_pack_of(img, x);

	*size = pack ? pack->size : (uint64_t)x->blocks * IMAGE_BLOCK;
	return pack ? pack->file_offset : x->file_offset;
}

int image_source_fd(const struct image *img, const struct image_extent *x)
{
	if (!x->source)
		return img->fd;
	return x->source < img->source_count ? img->sources[x->source].fd : -1;
}

static const char *source_path(const struct image *img, const struct image_extent *x)
{
	return x->source ? img->sources[x->source].path : img->path;
}

int image_damaged(
	const struct image *img, const struct image_extent *x, uint64_t address, struct err *e)
{
	return image_bad_at(source_path(img, x), e,
		"the block at %#" PRIx64 " of object %u is damaged (checksum)", address,
		x->object);
}

/* What a pack is read into, and decompressed to where not all of it is wanted. */
struct pack_room {
	uint8_t packed[(IMAGE_PACK_BLOCKS + 1) * IMAGE_BLOCK];
	uint8_t blocks[IMAGE_PACK_BLOCKS * IMAGE_BLOCK];
};

static int unpack_blocks(const struct image *img, const struct image_extent *x, uint32_t first,
	uint32_t blocks, struct pack_room *room, void *data, struct err *e)
{
	const struct image_pack *pack = image_pack_of(img, x);
	bool whole = blocks == pack->blocks;
	void *out = whole ? data : room->blocks;

	if (pread_all(image_source_fd(img, x), room->packed, pack->size, pack->file_offset,
		    source_path(img, x), e) < 0)
		return -1;
	if (hash64(room->packed, pack->size) != pack->hash ||
		pack_unpack(pack->method, room->packed, pack->used, out,
			(size_t)pack->blocks * IMAGE_BLOCK) < 0)
		return image_damaged(img, x, x->address + (uint64_t)first * IMAGE_BLOCK, e);
	if (!whole)
		memcpy(data, room->blocks + (size_t)(x->skip + first) * IMAGE_BLOCK,
			(size_t)blocks * IMAGE_BLOCK);
	return 0;
}

static int read_packed(const struct image *img, const struct image_extent *x, uint32_t first,
	uint32_t blocks, void *data, struct err *e)
{
	cleanup_free struct pack_room *room = xmalloc(sizeof(*room));

	return unpack_blocks(img, x, first, blocks, room, data, e);
}

int image_read_blocks(const struct image *img, const struct image_extent *x, uint32_t first,
	uint32_t blocks, void *data, struct err *e)
{
	uint64_t skip = (uint64_t)first * IMAGE_BLOCK;
	uint8_t hash[IMAGE_HASH_SIZE];
	int fd = image_source_fd(img, x);
	const uint8_t *wanted;

	BUG_ON(!image_extent_is_stored(x) || first > x->blocks || blocks > x->blocks - first);
	if (!blocks)
		return 0;
	if (fd < 0)
		return image_bad(img, e, "the file that holds its blocks is not open");
	if (x->kind == IMAGE_EXTENT_PACKED
			? read_packed(img, x, first, blocks, data, e)
			: pread_all(fd, data, (size_t)blocks * IMAGE_BLOCK,
				  x->file_offset + skip, source_path(img, x), e))
		return -1;
	wanted = image_hashes(img, x, first, blocks, e);
	if (!wanted)
		return -1;
	for (uint32_t i = 0; i < blocks; i++) {
		hash128((char *)data + (size_t)i * IMAGE_BLOCK, IMAGE_BLOCK, hash);
		if (!memcmp(hash, wanted + (size_t)i * IMAGE_HASH_SIZE, sizeof(hash)))
			continue;
		return image_damaged(img, x, x->address + skip + (uint64_t)i * IMAGE_BLOCK, e);
	}
	return 0;
}

/* Zeros, written or not: a copy may have no holes. */
static int check_zeros(
	const struct image *img, uint64_t from, uint64_t to, void *data, struct err *e)
{
	for (uint64_t n; from < to; from += n) {
		n = to - from < CHECK_BLOCKS * IMAGE_BLOCK ? to - from
							   : CHECK_BLOCKS * IMAGE_BLOCK;
		if (pread_all(img->fd, data, n, from, img->path, e) < 0)
			return -1;
		if (!is_zero(data, n))
			return image_bad(img, e,
				"the zeros behind its end, which a debugger reads, are damaged "
				"(near offset %" PRIu64 ")",
				from);
	}
	return 0;
}

/* What core file readers find where memory is zero. */
static int check_hole(const struct image *img, void *data, struct err *e)
{
	uint64_t end = img->super.file_size + img->super.hole_size, to;
	off_t at = img->super.file_size;

	for (; (uint64_t)at < end; at = to) {
		at = lseek(img->fd, at, SEEK_DATA);
		if (at < 0)
			return errno == ENXIO
				       ? 0
				       : err_set(e, errno, "cannot read image %s", img->path);
		to = lseek(img->fd, at, SEEK_HOLE);
		if (to > end) /* or -1 */
			to = end;
		if ((uint64_t)at < end && check_zeros(img, at, to, data, e) < 0)
			return -1;
	}
	return 0;
}

int image_check_all(const struct image *img, struct err *e)
{
	cleanup_free void *data = xmalloc(CHECK_BLOCKS * IMAGE_BLOCK);

	if (check_hole(img, data, e) < 0 || image_need_hashes(img, e) < 0)
		return -1;
	for (size_t i = 0; i < img->extent_count; i++) {
		const struct image_extent *x = &img->extents[i];
		uint32_t blocks = image_extent_is_stored(x) ? x->blocks : 0, n;

		for (uint32_t at = 0; at < blocks; at += n) {
			n = blocks - at < CHECK_BLOCKS ? blocks - at : CHECK_BLOCKS;
			if (image_read_blocks(img, x, at, n, data, e) < 0)
				return -1;
		}
	}
	return 0;
}
