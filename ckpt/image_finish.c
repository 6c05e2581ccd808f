/*
 * image_finish.c - the end of writing an image: sort what was recorded, lay the metadata out
 * behind the blocks, and write the header last, so that a file cut short has none.
 */
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "ckpt/hash.h"
#include "ckpt/image_write_private.h"

/* The metadata while it is put together; offsets are those in the file. */
struct layout {
	uint64_t meta_offset;
	struct buf meta;
	uint64_t extents, hashes, notes, headers, section;
	uint64_t extents_size, hashes_size, notes_size;
	struct image_parts parts;
	size_t header_count;
	struct buf loads; /* struct image_load */
	uint64_t hole_size;
	uint64_t incompat;
};

void image_writer_encode_note(
	struct buf *out, const char *owner, uint32_t type, const void *data, size_t size)
{
	Elf64_Nhdr header = {.n_namesz = strlen(owner) + 1, .n_descsz = size, .n_type = type};

	buf_push(out, Elf64_Nhdr, &header);
	buf_add(out, owner, header.n_namesz);
	buf_grow(out, align_up(out->len, 4) - out->len);
	buf_add(out, data, size);
	buf_grow(out, align_up(out->len, 4) - out->len);
}

static int compare_extents(const void *left, const void *right)
{
	const struct image_extent *a = left, *b = right;

	if (a->object != b->object)
		return a->object < b->object ? -1 : 1;
	return (a->address > b->address) - (a->address < b->address);
}

static bool can_merge(const struct image_extent *a, const struct image_extent *b)
{
	uint64_t size = (uint64_t)a->blocks * IMAGE_BLOCK;

	if (a->object != b->object || a->kind != b->kind || a->source != b->source)
		return false;
	if (a->address + size != b->address || a->blocks > UINT32_MAX - b->blocks)
		return false;
	if (a->hash_table != b->hash_table || a->first_hash + a->blocks != b->first_hash)
		return a->kind == IMAGE_EXTENT_ZERO;
	if (a->kind == IMAGE_EXTENT_PACKED)
		return a->file_offset == b->file_offset && a->skip + a->blocks == b->skip;
	return a->kind != IMAGE_EXTENT_DATA || a->file_offset + size == b->file_offset;
}

/* How far to look back for a pack that several extents refer to. */
#define PACKS_BACK 16u

/* Put the pack of @x among the packs of the extents before, unless it is there already. */
static uint64_t place_pack(const struct image_writer *w, const struct image_extent *x,
	uint32_t sources[PACKS_BACK], struct buf *packs)
{
	const struct image_pack *pack = buf_at(&w->packs, struct image_pack, x->file_offset);
	size_t count = buf_count(packs, struct image_pack);

	for (size_t i = count; i-- > 0 && count - i <= PACKS_BACK;)
		if (buf_at(packs, struct image_pack, i)->file_offset == pack->file_offset &&
			sources[i % PACKS_BACK] == x->source)
			return i;
	sources[count % PACKS_BACK] = x->source;
	buf_push(packs, struct image_pack, pack);
	return count;
}

/* Hashes in a row, as they were recorded. */
struct hash_run {
	uint64_t first, count;
};

/* Put the hashes of @x, which are this file's, behind the *count hashes in @runs. */
static void place_hashes(struct image_extent *x, struct buf *runs, uint64_t *count)
{
	size_t n = buf_count(runs, struct hash_run);
	struct hash_run *last = n ? buf_at(runs, struct hash_run, n - 1) : NULL;
	struct hash_run next = {x->first_hash, x->blocks};

	if (last && last->first + last->count == next.first)
		last->count += next.count;
	else
		buf_push(runs, struct hash_run, &next);
	x->first_hash = *count;
	*count += x->blocks;
}

/* Sort the extents, bring hashes (@runs) and packs into the same order, join what is contiguous. */
static void sort_extents(struct image_writer *w, struct buf *runs)
{
	size_t count = buf_count(&w->extents, struct image_extent), kept = 0;
	struct image_extent *x = w->extents.data;
	uint32_t pack_sources[PACKS_BACK];
	struct buf packs = {0};
	uint64_t hashes = 0;

	if (count)
		qsort(x, count, sizeof(*x), compare_extents);
	for (size_t i = 0; i < count; i++) {
		struct image_extent this = x[i];

		if (this.kind == IMAGE_EXTENT_PACKED)
			this.file_offset = place_pack(w, &this, pack_sources, &packs);
		if (image_extent_is_stored(&this) && !this.hash_table)
			place_hashes(&this, runs, &hashes);
		if (kept && can_merge(&x[kept - 1], &this))
			x[kept - 1].blocks += this.blocks;
		else
			x[kept++] = this;
	}
	w->extents.len = kept * sizeof(*x);
	buf_free(&w->packs);
	w->notes[IMAGE_NOTE_PACKS] = packs;
	if (packs.len)
		w->incompat |= IMAGE_INCOMPAT_PACKS;
}

static void encode_own(struct buf *out, enum image_note type, const struct buf *contents)
{
	image_writer_encode_note(
		out, IMAGE_OWNER, IMAGE_NOTE_BASE + type, contents->data, contents->len);
}

static void encode_notes(struct image_writer *w, struct buf *out)
{
	buf_add(out, w->core_notes.data, w->core_notes.len);
	encode_own(out, IMAGE_NOTE_STRINGS, &w->strings.text);
	for (int i = 0; i < IMAGE_NOTE_MAX; i++)
		if (w->notes[i].len)
			encode_own(out, i, &w->notes[i]);
}

/* Append a part of the metadata at a multiple of 8; returns its offset in the file. */
static uint64_t append_metadata(struct layout *l, const void *data, size_t size)
{
	uint64_t offset;

	buf_grow(&l->meta, align_up(l->meta.len, 8) - l->meta.len);
	offset = l->meta_offset + l->meta.len;
	buf_add(&l->meta, data, size);
	return offset;
}

/* There are many: they are copied once. */
static void append_hashes(struct layout *l, const struct buf *hashes, const struct buf *runs)
{
	l->hashes = append_metadata(l, NULL, 0);
	for (size_t i = 0; i < buf_count(runs, struct hash_run); i++) {
		const struct hash_run *run = buf_at(runs, struct hash_run, i);

		buf_add(&l->meta, (char *)hashes->data + run->first * IMAGE_HASH_SIZE,
			run->count * IMAGE_HASH_SIZE);
	}
	l->hashes_size = l->meta_offset + l->meta.len - l->hashes;
}

static void sum_hashes(const struct layout *l, struct buf *sums)
{
	const char *hashes = (char *)l->meta.data + (l->hashes - l->meta_offset);

	image_hash_sums((const uint8_t *)hashes, l->hashes_size / IMAGE_HASH_SIZE, sums);
}

/* So that the hashes need not be read with the rest. */
static void sum_parts(struct layout *l)
{
	uint64_t before = l->hashes - l->meta_offset, behind = before + l->hashes_size;
	const char *meta = l->meta.data;

	l->parts.hashes_offset = l->hashes;
	l->parts.hashes_size = l->hashes_size;
	hash128(meta, before, l->parts.before);
	hash128(meta + behind, l->meta.len - behind, l->parts.behind);
}

static void find_loads(struct image_writer *w, struct layout *l)
{
	const struct image_extent *x = w->extents.data;
	size_t count = buf_count(&w->extents, struct image_extent), memory = 0;

	for (size_t i = 0; i < count; i++)
		if (x[i].source)
			l->incompat |= IMAGE_INCOMPAT_CHAIN;
	while (memory < count && !x[memory].object)
		memory++;
	l->hole_size = image_loads(w->ranges.data, buf_count(&w->ranges, struct image_range),
		w->extents.data, memory, &l->loads);
}

static void find_files(const struct image_writer *w, struct layout *l)
{
	const struct buf *chain = &w->notes[IMAGE_NOTE_CHAIN];

	for (size_t i = 0; i < buf_count(chain, struct image_chain); i++)
		if (buf_at(chain, struct image_chain, i)->file)
			l->incompat |= IMAGE_INCOMPAT_FILES;
	if (w->notes[IMAGE_NOTE_CHAIN_NAMES].len)
		l->incompat |= IMAGE_INCOMPAT_PEERS;
}

static Elf64_Phdr part_header(uint32_t type, uint64_t offset, uint64_t size, uint64_t align)
{
	return (Elf64_Phdr){
		.p_type = type,
		.p_flags = PF_R,
		.p_offset = offset,
		.p_filesz = size,
		.p_align = align,
	};
}

/* The program headers and, when there are too many for the ELF header to count, section
 * header 0, which counts them (elf(5), PN_XNUM). */
static void append_headers(struct layout *l)
{
	size_t loads = buf_count(&l->loads, struct image_load), table;
	Elf64_Shdr section = {0};
	Elf64_Phdr *header;
	uint64_t hole;

	l->header_count = loads + 3;
	l->headers = append_metadata(l, NULL, 0);
	table = l->meta.len;
	buf_grow(&l->meta, l->header_count * sizeof(*header));
	if (l->header_count >= PN_XNUM) {
		section.sh_info = l->header_count;
		l->section = append_metadata(l, &section, sizeof(section));
	}
	buf_grow(&l->meta, align_up(l->meta.len, IMAGE_BLOCK) - l->meta.len);
	hole = l->meta_offset + l->meta.len;

	header = (Elf64_Phdr *)((char *)l->meta.data + table);
	*header++ = part_header(PT_NOTE, l->notes, l->notes_size, 4);
	for (size_t i = 0; i < loads; i++)
		*header++ = image_load_header(buf_at(&l->loads, struct image_load, i), hole);
	*header++ = part_header(IMAGE_PT_EXTENTS, l->extents, l->extents_size, 8);
	*header++ = part_header(IMAGE_PT_HASHES, l->hashes, l->hashes_size, 8);
}

static int lay_out(struct image_writer *w, struct layout *l, struct err *e)
{
	cleanup_buf struct buf notes = {0}, hash_runs = {0}, sums = {0};

	l->meta_offset = w->files[0].end;
	if (w->hashes.len / IMAGE_HASH_SIZE > UINT32_MAX)
		return err_set(e, EFBIG, "cannot write %s: too many blocks", w->files[0].what);
	sort_extents(w, &hash_runs);
	image_writer_place_tables(w);
	for (int i = 0; i < IMAGE_NOTE_MAX; i++)
		if (w->notes[i].len > UINT32_MAX)
			return err_set(
				e, EFBIG, "cannot write %s: note %d", w->files[0].what, i);
	find_loads(w, l);
	find_files(w, l);
	l->incompat |= w->incompat;
	encode_notes(w, &notes);
	buf_reserve(&l->meta, w->extents.len + w->hashes.len + notes.len + IMAGE_BLOCK +
				      w->hashes.len / IMAGE_HASH_PIECE);
	l->extents_size = w->extents.len;
	l->extents = append_metadata(l, w->extents.data, w->extents.len);
	append_hashes(l, &w->hashes, &hash_runs);
	if (l->hashes_size) {
		sum_hashes(l, &sums);
		encode_own(&notes, IMAGE_NOTE_OWN_SUMS, &sums);
	}
	l->notes_size = notes.len;
	l->notes = append_metadata(l, notes.data, notes.len);
	append_headers(l);
	if (l->hashes_size)
		sum_parts(l);
	return 0;
}

static Elf64_Ehdr elf_header(const struct layout *l)
{
	Elf64_Ehdr h = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			EV_CURRENT},
		.e_type = ET_CORE,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = l->headers,
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = l->header_count < PN_XNUM ? l->header_count : PN_XNUM,
	};

	if (l->section) {
		h.e_shoff = l->section;
		h.e_shentsize = sizeof(Elf64_Shdr);
		h.e_shnum = 1;
	}
	return h;
}

/* The first IMAGE_HEAD_SIZE bytes of a file of @kind. */
static void build_head(const struct image_writer *w, enum image_file_kind kind,
	const struct layout *l, uint8_t *head)
{
	Elf64_Ehdr elf = elf_header(l);
	struct image_super super = {
		.magic = IMAGE_MAGIC,
		.version = IMAGE_VERSION,
		.file_kind = kind,
		.compat = (w->maker.version[0] ? IMAGE_COMPAT_MAKER : 0) |
			  (l->hashes_size ? IMAGE_COMPAT_PARTS : 0),
		.incompat = l->incompat,
		.file_size = l->meta_offset + l->meta.len,
		.hole_size = l->hole_size,
		.meta_offset = l->meta_offset,
		.meta_size = l->meta.len,
		.block_size = IMAGE_BLOCK,
	};

	hash128(l->meta.data, l->meta.len, super.meta_hash);
	memcpy(super.checkpoint_id, w->checkpoint_id, sizeof(super.checkpoint_id));
	memset(head, 0, IMAGE_HEAD_SIZE);
	memcpy(head, &elf, sizeof(elf));
	memcpy(head + IMAGE_PARTS_OFFSET, &l->parts, sizeof(l->parts));
	memcpy(head + IMAGE_MAKER_OFFSET, &w->maker, sizeof(w->maker));
	memcpy(head + IMAGE_SUPER_OFFSET, &super, sizeof(super));
	super.head_hash = hash64(head, IMAGE_HEAD_SIZE);
	memcpy(head + IMAGE_SUPER_OFFSET, &super, sizeof(super));
}

/* Give the files of blocks their headers. */
static int finish_files(struct image_writer *w, bool sync, struct err *e)
{
	uint8_t head[IMAGE_HEAD_SIZE];

	for (unsigned i = 1; i < w->file_count; i++) {
		struct image_blocks_file *f = &w->files[i];
		struct layout none = {.meta_offset = f->end};

		build_head(w, IMAGE_FILE_BLOCKS, &none, head);
		if (pwrite_all(f->fd, head, sizeof(head), 0, f->what, e) < 0)
			return -1;
		if (sync && fsync(f->fd) < 0)
			return err_set(e, errno, "cannot flush %s to disk", f->what);
	}
	return 0;
}

static int write_metadata(struct image_writer *w, struct layout *l, bool sync, struct err *e)
{
	uint8_t head[IMAGE_HEAD_SIZE];

	if (lay_out(w, l, e) < 0)
		return -1;
	build_head(w, w->kind, l, head);
	if (pwrite_all(w->files[0].fd, l->meta.data, l->meta.len, l->meta_offset,
		    w->files[0].what, e) < 0)
		return -1;
	if (l->hole_size &&
		ftruncate(w->files[0].fd, l->meta_offset + l->meta.len + l->hole_size) < 0)
		return err_set(e, errno, "cannot write %s", w->files[0].what);
	if (pwrite_all(w->files[0].fd, head, sizeof(head), 0, w->files[0].what, e) < 0)
		return -1;
	if (sync && fsync(w->files[0].fd) < 0)
		return err_set(e, errno, "cannot flush %s to disk", w->files[0].what);
	return 0;
}

int image_writer_close(struct image_writer *w, bool sync, struct err *e)
{
	struct layout l = {0};
	int r = finish_files(w, sync, e);

	if (!r)
		r = write_metadata(w, &l, sync, e);
	buf_free(&l.meta);
	buf_free(&l.loads);
	image_writer_abort(w);
	return r;
}
