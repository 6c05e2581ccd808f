/*
 * contents.c - sorts what an image stores, what it refers to and what lies in files into
 * pieces of a region, and reads them.
 */
#include "tools/inspect/contents.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/util.h"
#include "supervisor/target/module.h"

/* A mapped file that was asked for. */
struct mapped_file {
	bool tried;
	int fd; /* -1: cannot be used, see error */
	uint64_t size;
	struct err error;
};

struct contents {
	const struct image *img, *job;
	const struct image_process *process;
	const struct image_region *regions;
	size_t region_count;
	const struct image_module *modules;
	size_t module_count;
	const struct image_object *objects;
	size_t object_count;
	struct mapped_file *files; /* by module */

	uint64_t cached; /* address of the block in cache; unaligned: none */
	uint8_t cache[IMAGE_BLOCK];
};

struct contents *contents_open(const struct checkpoint *c, size_t index)
{
	struct contents *m = xcalloc(1, sizeof(*m));
	size_t one;

	m->img = c->processes[checkpoint_owner(c, index, IMAGE_SHARED_MEMORY)];
	m->job = c->job;
	m->cached = 1;
	m->process = image_note_array(m->img, IMAGE_NOTE_PROCESS, struct image_process, &one);
	m->regions = image_note_array(
		m->img, IMAGE_NOTE_REGIONS, struct image_region, &m->region_count);
	m->modules = image_note_array(
		m->img, IMAGE_NOTE_MODULES, struct image_module, &m->module_count);
	m->objects = image_note_array(
		m->job, IMAGE_NOTE_OBJECTS, struct image_object, &m->object_count);
	m->files = xcalloc(m->module_count, sizeof(*m->files));
	return m;
}

void contents_close(struct contents *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->module_count; i++)
		if (m->files[i].tried && m->files[i].fd >= 0)
			close(m->files[i].fd);
	free(m->files);
	free(m);
}

const struct image_region *contents_regions(const struct contents *m, size_t *count)
{
	*count = m->region_count;
	return m->regions;
}

/* ---- extents ---- */

static uint64_t extent_end(const struct image_extent *x)
{
	return x->address + (uint64_t)x->blocks * IMAGE_BLOCK;
}

/* The first extent of @object that ends behind @address, and the end of the object's. */
static const struct image_extent *extents_from(const struct image *img, uint32_t object,
	uint64_t address, const struct image_extent **end)
{
	size_t count, low = 0, high;
	const struct image_extent *x = image_extents(img, object, &count);

	high = count;
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (extent_end(&x[mid]) <= address)
			low = mid + 1;
		else
			high = mid;
	}
	*end = count ? x + count : NULL;
	return count ? x + low : NULL;
}

void contents_tally(
	const struct image *img, uint32_t object, uint64_t start, uint64_t end, struct tally *t)
{
	const struct image_extent *last, *x = extents_from(img, object, start, &last);

	for (; x < last && x->address < end; x++) {
		uint64_t from = x->address > start ? x->address : start;
		uint64_t to = extent_end(x) < end ? extent_end(x) : end;
		uint64_t blocks = (to - from) / IMAGE_BLOCK;

		if (x->kind == IMAGE_EXTENT_ZERO)
			t->zero += blocks;
		else if (image_extent_is_elsewhere(img, x))
			t->elsewhere += blocks;
		else
			t->here += blocks;
	}
}

struct tally contents_region_tally(const struct image *img, const struct image_region *r)
{
	struct tally t = {0};

	if (r->kind == IMAGE_REGION_ANON || r->kind == IMAGE_REGION_FILE ||
		r->kind == IMAGE_REGION_DEVICE || r->kind == IMAGE_REGION_AIO)
		contents_tally(img, 0, r->start, r->end, &t);
	return t;
}

/* ---- pieces ---- */

/* What memory is where no extent covers it; @key is the address in the object. */
static void place_uncovered(
	const struct contents *m, const struct image_region *r, uint64_t key, struct piece *p)
{
	uint64_t size;

	p->offset = r->offset + (p->start - r->start);
	switch (r->kind) {
	case IMAGE_REGION_FILE:
	case IMAGE_REGION_SHARED_FILE:
		p->place = r->module ? PLACE_FILE : PLACE_NONE;
		return;
	case IMAGE_REGION_SHARED:
		/* Behind the object's end there is nothing. */
		size = r->object ? align_up(m->objects[r->object - 1].size, IMAGE_BLOCK) : 0;
		p->place = key < size ? PLACE_ZERO : PLACE_NONE;
		if (key < size && p->end - p->start > size - key)
			p->end = p->start + (size - key);
		return;
	case IMAGE_REGION_PRIVATE: /* as the object has it */
	case IMAGE_REGION_URING:   /* the kernel's memory: it is with the descriptor */
		p->place = PLACE_NONE;
		return;
	default:
		p->place = PLACE_ZERO;
	}
}

static void stored_piece(
	const struct contents *m, const struct image_region *r, struct piece *p)
{
	bool shared = r->kind == IMAGE_REGION_SHARED;
	uint64_t key = shared ? r->offset + (p->start - r->start) : p->start, left;
	const struct image_extent *last, *x;

	p->img = shared ? m->job : m->img;
	x = extents_from(p->img, shared ? r->object : 0, key, &last);
	if (x == last || x->address > key) {
		left = x == last ? p->end - p->start : x->address - key;
		if (left < p->end - p->start)
			p->end = p->start + left;
		place_uncovered(m, r, key, p);
		return;
	}
	left = extent_end(x) - key;
	if (left < p->end - p->start)
		p->end = p->start + left;
	p->place = x->kind == IMAGE_EXTENT_ZERO ? PLACE_ZERO : PLACE_STORED;
	p->x = x;
	p->block = (key - x->address) / IMAGE_BLOCK;
}

static void vdso_piece(const struct contents *m, struct piece *p)
{
	uint64_t size = align_down(m->img->notes[IMAGE_NOTE_VDSO].size, IMAGE_BLOCK);

	p->offset = p->start - m->process->vdso_start;
	if (p->offset >= size || p->offset % IMAGE_BLOCK)
		return;
	p->place = PLACE_VDSO;
	if (p->end - p->start > size - p->offset)
		p->end = p->start + (size - p->offset);
}

struct piece contents_piece(const struct contents *m, const struct image_region *r, uint64_t at)
{
	struct piece p = {.start = at, .end = r->end, .place = PLACE_NONE};

	BUG_ON(at < r->start || at >= r->end);
	if (r->kind == IMAGE_REGION_VDSO)
		vdso_piece(m, &p);
	else if (r->kind == IMAGE_REGION_VVAR || r->advice & IMAGE_ADVICE_GUARD ||
		 r->flags & IMAGE_REGION_DROPPABLE || r->offset % IMAGE_BLOCK)
		p.place = PLACE_NONE;
	else
		stored_piece(m, r, &p);
	return p;
}

/* ---- mapped files ---- */

static int open_regular(const char *path, struct err *e)
{
	/* The path comes from the image: a FIFO there would make us wait for ever. */
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(e, errno, "cannot open %s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, 0, "cannot read %s: it is not a regular file", path);
	return steal_fd(&fd);
}

/* Mapped shared: what it holds now is what the program would see. */
static bool is_identified(const struct image_module *module)
{
	return module->build_id_size || module->flags & IMAGE_MODULE_HASHED;
}

int contents_open_module(const struct contents *m, uint32_t module, struct err *e)
{
	const struct image_module *wanted = &m->modules[module - 1];
	const char *path = image_string(m->img, wanted->path);

	if (is_identified(wanted) && module_check(wanted, path, e) < 0)
		return -1;
	return open_regular(path, e);
}

static struct mapped_file *get_file(struct contents *m, uint32_t module)
{
	struct mapped_file *f = &m->files[module - 1];
	struct stat st;

	if (f->tried)
		return f;
	f->tried = true;
	f->fd = contents_open_module(m, module, &f->error);
	if (f->fd >= 0 && fstat(f->fd, &st) == 0)
		f->size = st.st_size;
	return f;
}

int64_t contents_readable(
	struct contents *m, const struct image_region *r, const struct piece *p, struct err *e)
{
	uint64_t size = p->end - p->start, file_size;
	struct mapped_file *f;

	BUG_ON(p->place == PLACE_NONE || p->place == PLACE_ZERO);
	if (p->place != PLACE_FILE)
		return size;
	f = get_file(m, r->module);
	if (f->fd < 0) {
		*e = f->error;
		return -1;
	}
	file_size = align_up(f->size, IMAGE_BLOCK);
	if (p->offset >= file_size)
		return 0;
	return size < file_size - p->offset ? size : file_size - p->offset;
}

/* ---- reading ---- */

/* Behind the end of the file its last page is zero. */
static int read_file_part(struct contents *m, const struct image_region *r, uint64_t offset,
	void *data, size_t size, struct err *e)
{
	const char *path = image_string(m->img, m->modules[r->module - 1].path);
	struct mapped_file *f = get_file(m, r->module);
	uint64_t there;

	if (f->fd < 0) {
		*e = f->error;
		return -1;
	}
	there = offset < f->size ? f->size - offset : 0;
	if (align_up(there, IMAGE_BLOCK) < size)
		return err_set(e, 0, "cannot read %s: it ends unexpectedly", path);
	if (there < size)
		memset((char *)data + there, 0, size - there);
	return pread_all(f->fd, data, there < size ? there : size, offset, path, e);
}

int contents_read_piece(struct contents *m, const struct image_region *r, const struct piece *p,
	uint64_t at, void *data, size_t size, struct err *e)
{
	uint64_t skip = at - p->start;
	const char *vdso = m->img->notes[IMAGE_NOTE_VDSO].data;

	BUG_ON(at < p->start || size > p->end - at || (size | skip) % IMAGE_BLOCK);
	switch (p->place) {
	case PLACE_ZERO:
		memset(data, 0, size);
		return 0;
	case PLACE_STORED:
		return image_read_blocks(p->img, p->x, p->block + skip / IMAGE_BLOCK,
			size / IMAGE_BLOCK, data, e);
	case PLACE_FILE:
		return read_file_part(m, r, p->offset + skip, data, size, e);
	case PLACE_VDSO:
		memcpy(data, vdso + p->offset + skip, size);
		return 0;
	default:
		BUG();
	}
}

static const struct image_region *find_region(const struct contents *m, uint64_t address)
{
	size_t low = 0, high = m->region_count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (m->regions[mid].end <= address)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == m->region_count || m->regions[low].start > address)
		return NULL;
	return &m->regions[low];
}

/* Bring the block at @address into the cache. */
static int load_block(struct contents *m, uint64_t address, struct err *e)
{
	const struct image_region *r = find_region(m, address);
	struct piece p;

	if (m->cached == address)
		return 0;
	if (!r)
		return err_set(e, 0, "nothing was mapped at %#" PRIx64, address);
	p = contents_piece(m, r, address);
	if (p.place == PLACE_NONE)
		return err_set(e, 0, "the image has no memory at %#" PRIx64, address);
	m->cached = 1;
	if (contents_read_piece(m, r, &p, address, m->cache, IMAGE_BLOCK, e) < 0)
		return -1;
	m->cached = address;
	return 0;
}

static int read_range(
	struct contents *m, uint64_t address, void *data, size_t left, struct err *e)
{
	uint8_t *to = data;

	while (left) {
		size_t skip = address % IMAGE_BLOCK, n = IMAGE_BLOCK - skip;

		if (load_block(m, address - skip, e) < 0)
			return -1;
		n = n < left ? n : left;
		memcpy(to, m->cache + skip, n);
		address += n;
		to += n;
		left -= n;
	}
	return 0;
}

int contents_read_word(struct contents *m, uint64_t address, uint64_t *word, struct err *e)
{
	return read_range(m, address, word, sizeof(*word), e);
}

int contents_read(struct contents *m, uint64_t address, void *data, size_t size)
{
	return read_range(m, address, data, size, NULL);
}
