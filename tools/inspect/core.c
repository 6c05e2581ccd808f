/*
 * A plain core file: blocks first, as they come, then notes, program headers and a hole that
 * all zero memory points to. The header comes last, so that a file cut short has none.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <string.h>
#include <sys/mman.h>

#include "ckpt/image_segments.h"
#include "tools/inspect/contents.h"
#include "tools/inspect/view.h"

#define COPY_SIZE (1u << 20)

struct core {
	int fd;
	const char *path;
	const struct image *img;
	struct contents *contents;
	bool *noticed; /* by module: that it is missing has been said */
	void (*notice)(const char *line);
	void *buffer; /* COPY_SIZE bytes */

	uint64_t end;       /* of what has been written */
	struct buf ranges;  /* struct image_range */
	struct buf extents; /* struct image_extent, with offsets in this file */
	struct buf notes;
};

/* ---- memory ---- */

static void add_extents(struct core *k, enum image_extent_kind kind, uint64_t address,
	uint64_t offset, uint64_t size)
{
	while (size) {
		uint64_t most = (uint64_t)UINT32_MAX * IMAGE_BLOCK;
		uint64_t part = size < most ? size : most;
		struct image_extent x = {
			.address = address,
			.file_offset = offset,
			.blocks = part / IMAGE_BLOCK,
			.kind = kind,
		};

		buf_push(&k->extents, struct image_extent, &x);
		address += part;
		offset += part;
		size -= part;
	}
}

static int copy_piece(struct core *k, const struct image_region *r, const struct piece *p,
	uint64_t size, struct err *e)
{
	for (uint64_t done = 0, n; done < size; done += n) {
		n = size - done < COPY_SIZE ? size - done : COPY_SIZE;
		if (contents_read_piece(k->contents, r, p, p->start + done, k->buffer, n, e) <
				0 ||
			pwrite_all(k->fd, k->buffer, n, k->end + done, k->path, e) < 0)
			return -1;
	}
	add_extents(k, IMAGE_EXTENT_DATA, p->start, k->end, size);
	k->end += size;
	return 0;
}

static int add_piece(
	struct core *k, const struct image_region *r, const struct piece *p, struct err *e)
{
	struct err why = ERR_INIT;
	int64_t size;

	switch (p->place) {
	case PLACE_NONE:
		return 0;
	case PLACE_ZERO:
		/* As the kernel does, nothing is kept of reservations. */
		if (r->prot != PROT_NONE)
			add_extents(k, IMAGE_EXTENT_ZERO, p->start, 0, p->end - p->start);
		return 0;
	default:
		break;
	}
	size = contents_readable(k->contents, r, p, &why);
	if (size >= 0)
		return copy_piece(k, r, p, size, e);
	if (!k->noticed[r->module - 1])
		k->notice(why.msg);
	k->noticed[r->module - 1] = true;
	return 0;
}

static int add_region(struct core *k, const struct image_region *r, struct err *e)
{
	struct image_range range = {
		.start = r->start,
		.end = r->end,
		.flags = (r->prot & PROT_READ ? PF_R : 0) | (r->prot & PROT_WRITE ? PF_W : 0) |
			 (r->prot & PROT_EXEC ? PF_X : 0),
	};
	struct piece p;

	buf_push(&k->ranges, struct image_range, &range);
	for (uint64_t at = r->start; at < r->end; at = p.end) {
		p = contents_piece(k->contents, r, at);
		if (add_piece(k, r, &p, e) < 0)
			return -1;
	}
	return 0;
}

static int add_memory(struct core *k, struct err *e)
{
	const struct image_region *r;
	size_t count;

	r = contents_regions(k->contents, &count);
	for (size_t i = 0; i < count; i++)
		if (r[i].kind != IMAGE_REGION_VVAR && add_region(k, &r[i], e) < 0)
			return -1;
	return 0;
}

/* ---- notes ---- */

static bool is_owner(const char *name, size_t size, const char *owner)
{
	return size == strlen(owner) + 1 && !memcmp(name, owner, size);
}

/* The standard ones, as they are. */
static void take_notes(struct core *k, Elf_Data *data)
{
	size_t at = 0, next, name, contents;
	GElf_Nhdr note;

	for (; (next = gelf_getnote(data, at, &note, &name, &contents)) > 0; at = next) {
		const char *owner = (const char *)data->d_buf + name;

		if (is_owner(owner, note.n_namesz, "CORE") ||
			is_owner(owner, note.n_namesz, "LINUX"))
			buf_add(&k->notes, (const char *)data->d_buf + at, next - at);
	}
}

static int add_notes(struct core *k, struct err *e)
{
	Elf *elf = elf_begin(k->img->fd, ELF_C_READ, NULL);
	size_t count;

	if (!elf || elf_getphdrnum(elf, &count) < 0)
		goto out_damaged;
	for (size_t i = 0; i < count; i++) {
		Elf_Data *data;
		GElf_Phdr header;

		if (!gelf_getphdr(elf, i, &header))
			goto out_damaged;
		if (header.p_type != PT_NOTE)
			continue;
		data = elf_getdata_rawchunk(elf, header.p_offset, header.p_filesz, ELF_T_NHDR);
		if (!data)
			goto out_damaged;
		take_notes(k, data);
	}
	elf_end(elf);
	return 0;

out_damaged:
	err_set(e, 0, "cannot read the notes of %s: %s", k->img->path, elf_errmsg(-1));
	elf_end(elf);
	return -1;
}

/* ---- what comes behind the blocks ---- */

struct tail {
	struct buf bytes; /* from k->end on */
	uint64_t headers, section, hole;
	uint64_t hole_size;
	size_t header_count;
};

/* Room for what is filled in later, at a multiple of @align; its offset in the file. */
static uint64_t reserve_tail(const struct core *k, struct tail *t, size_t size, size_t align)
{
	uint64_t offset;

	buf_grow(&t->bytes, align_up(t->bytes.len, align) - t->bytes.len);
	offset = k->end + t->bytes.len;
	buf_grow(&t->bytes, size);
	return offset;
}

static void build_tail(struct core *k, struct tail *t)
{
	cleanup_buf struct buf loads = {0};
	Elf64_Phdr *header;

	t->hole_size = image_loads(k->ranges.data, buf_count(&k->ranges, struct image_range),
		k->extents.data, buf_count(&k->extents, struct image_extent), &loads);
	t->header_count = buf_count(&loads, struct image_load) + 1;
	buf_add(&t->bytes, k->notes.data, k->notes.len);
	t->headers = reserve_tail(k, t, t->header_count * sizeof(*header), 8);
	/* More than an ELF header can count are counted by section header 0 (elf(5)). */
	if (t->header_count >= PN_XNUM) {
		t->section = reserve_tail(k, t, sizeof(Elf64_Shdr), 8);
		((Elf64_Shdr *)((char *)t->bytes.data + (t->section - k->end)))->sh_info =
			t->header_count;
	}
	t->hole = reserve_tail(k, t, 0, IMAGE_BLOCK);
	header = (Elf64_Phdr *)((char *)t->bytes.data + (t->headers - k->end));
	*header++ = (Elf64_Phdr){
		.p_type = PT_NOTE,
		.p_offset = k->end,
		.p_filesz = k->notes.len,
		.p_align = 4,
	};
	for (size_t i = 0; i + 1 < t->header_count; i++)
		*header++ = image_load_header(buf_at(&loads, struct image_load, i), t->hole);
}

static Elf64_Ehdr elf_header(const struct tail *t)
{
	return (Elf64_Ehdr){
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			EV_CURRENT},
		.e_type = ET_CORE,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = t->headers,
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = t->section ? PN_XNUM : t->header_count,
		.e_shoff = t->section,
		.e_shentsize = t->section ? sizeof(Elf64_Shdr) : 0,
		.e_shnum = t->section ? 1 : 0,
	};
}

static int write_tail(struct core *k, const struct tail *t, struct err *e)
{
	Elf64_Ehdr header = elf_header(t);

	if (pwrite_all(k->fd, t->bytes.data, t->bytes.len, k->end, k->path, e) < 0)
		return -1;
	if (t->hole_size && ftruncate(k->fd, t->hole + t->hole_size) < 0)
		return err_set(e, errno, "cannot write %s", k->path);
	return pwrite_all(k->fd, &header, sizeof(header), 0, k->path, e);
}

static int fill_core(struct core *k, struct err *e)
{
	struct tail t = {0};
	int r;

	if (add_memory(k, e) < 0 || add_notes(k, e) < 0)
		return -1;
	build_tail(k, &t);
	r = write_tail(k, &t, e);
	buf_free(&t.bytes);
	return r;
}

int core_write(const struct checkpoint *c, size_t process, const char *path,
	void (*notice)(const char *line), struct err *e)
{
	struct core k = {.path = path, .notice = notice, .end = IMAGE_HEAD_SIZE};
	size_t owner = checkpoint_owner(c, process, IMAGE_SHARED_MEMORY), modules;
	int r;

	k.fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (k.fd < 0)
		return err_set(e, errno, "cannot create %s", path);
	k.img = c->processes[process];
	k.contents = contents_open(c, process);
	(void)image_note_array(
		c->processes[owner], IMAGE_NOTE_MODULES, struct image_module, &modules);
	k.noticed = xcalloc(modules, sizeof(*k.noticed));
	k.buffer = xmalloc(COPY_SIZE);
	r = fill_core(&k, e);
	if (close(k.fd) < 0 && r == 0)
		r = err_set(e, errno, "cannot write %s", path);
	if (r < 0)
		(void)unlink(path); /* without its header nobody takes it for a core file */
	contents_close(k.contents);
	free(k.noticed);
	free(k.buffer);
	buf_free(&k.ranges);
	buf_free(&k.extents);
	buf_free(&k.notes);
	return r;
}
