/*
 * image_meta.c - the metadata of an image: its parts, and what must hold for each of them
 * before anything else looks at it.
 */
#include <elf.h>
#include <inttypes.h>
#include <string.h>

#include "ckpt/hash.h"
#include "ckpt/image_memory.h"
#include "ckpt/image_read_private.h"
#include "lib/util.h"

/* What a note of owner TRECR is an array of. */
static const struct note_rule {
	size_t size;
	size_t count; /* exactly that many elements; 0: any number */
} note_rules[IMAGE_NOTE_MAX] = {
	[IMAGE_NOTE_STRINGS] = {1, 0},
	[IMAGE_NOTE_CHAIN] = {sizeof(struct image_chain), 0},
	[IMAGE_NOTE_JOB] = {sizeof(struct image_job), 1},
	[IMAGE_NOTE_PROCESSES] = {sizeof(struct image_job_process), 0},
	[IMAGE_NOTE_DESCRIPTIONS] = {sizeof(struct image_description), 0},
	[IMAGE_NOTE_OBJECTS] = {sizeof(struct image_object), 0},
	[IMAGE_NOTE_PROCESS] = {sizeof(struct image_process), 1},
	[IMAGE_NOTE_THREADS] = {sizeof(struct image_thread), 0},
	[IMAGE_NOTE_REGIONS] = {sizeof(struct image_region), 0},
	[IMAGE_NOTE_SIGACTIONS] = {sizeof(struct image_sigaction), 64},
	[IMAGE_NOTE_PENDING] = {sizeof(struct image_pending), 0},
	[IMAGE_NOTE_TIMERS] = {sizeof(struct image_timer), 0},
	[IMAGE_NOTE_FDS] = {sizeof(struct image_fd), 0},
	[IMAGE_NOTE_MODULES] = {sizeof(struct image_module), 0},
	[IMAGE_NOTE_VDSO] = {1, 0},
	[IMAGE_NOTE_XSTATE] = {1, 0},
	[IMAGE_NOTE_AUXV] = {1, 0},
	[IMAGE_NOTE_LOWER] = {sizeof(struct image_module), 0},
	[IMAGE_NOTE_GROUPS] = {sizeof(uint32_t), 0},
	[IMAGE_NOTE_MEMPOLICIES] = {sizeof(struct image_mempolicy), 0},
	[IMAGE_NOTE_THREAD_FDS] = {sizeof(struct image_thread_fd), 0},
	[IMAGE_NOTE_FILTERS] = {sizeof(struct image_filter), 0},
	[IMAGE_NOTE_FILTER_CODE] = {sizeof(uint64_t), 0},
	[IMAGE_NOTE_SOCKETS] = {sizeof(struct image_socket), 0},
	[IMAGE_NOTE_SOCKET_OPTIONS] = {sizeof(struct image_socket_option), 0},
	[IMAGE_NOTE_MESSAGES] = {sizeof(struct image_message), 0},
	[IMAGE_NOTE_RIGHTS] = {sizeof(uint32_t), 0},
	[IMAGE_NOTE_TCP] = {sizeof(struct image_tcp), 0},
	[IMAGE_NOTE_CGROUPS] = {1, 0},
	[IMAGE_NOTE_DIRECTORIES] = {sizeof(struct image_directories), 0},
	[IMAGE_NOTE_TERMINAL] = {sizeof(struct image_terminal), 1},
	[IMAGE_NOTE_AIO_REQUESTS] = {sizeof(struct image_aio_request), 0},
	[IMAGE_NOTE_OPTIONS] = {sizeof(struct image_options), 1},
	[IMAGE_NOTE_RUN_OPTIONS] = {sizeof(struct image_run_options), 1},
	[IMAGE_NOTE_FILE_ATTRIBUTES] = {sizeof(struct image_file_attributes), 0},
	[IMAGE_NOTE_XATTRS] = {sizeof(struct image_xattr), 0},
	[IMAGE_NOTE_XATTR_VALUES] = {1, 0},
	[IMAGE_NOTE_SHARING] = {sizeof(struct image_sharing), 0},
	[IMAGE_NOTE_PACKS] = {sizeof(struct image_pack), 0},
	[IMAGE_NOTE_CHAIN_NAMES] = {sizeof(uint32_t), 0},
	[IMAGE_NOTE_SAVE_DIRS] = {sizeof(uint32_t), 0},
	[IMAGE_NOTE_HASH_TABLES] = {sizeof(struct image_hash_table), 0},
	[IMAGE_NOTE_HASH_SUMS] = {sizeof(uint64_t), 0},
	[IMAGE_NOTE_OWN_SUMS] = {sizeof(uint64_t), 0},
};

/* Whether [@offset, @offset + @size), which is within the metadata, has not been read. */
static bool is_unread(const struct image *img, uint64_t offset, uint64_t size)
{
	return offset < img->unread_offset + img->unread_size &&
	       offset + size > img->unread_offset;
}

/* The @size bytes at @offset of the file, NULL when they are not all in the metadata. */
static const void *meta_at(const struct image *img, uint64_t offset, uint64_t size)
{
	uint64_t at = offset - img->super.meta_offset;

	if (offset < img->super.meta_offset || at > img->super.meta_size ||
		size > img->super.meta_size - at || is_unread(img, offset, size))
		return NULL;
	return (const char *)img->meta + at;
}

/* The same of the hashes, which are where the head says, if they have not been read. */
static const void *hashes_at(const struct image *img, uint64_t offset, uint64_t size)
{
	if (!img->unread_size)
		return meta_at(img, offset, size);
	if (offset != img->unread_offset || size != img->unread_size)
		return NULL;
	return (const char *)img->meta + (offset - img->super.meta_offset);
}

/* How many program headers there are: more than an ELF header can count are counted by
 * section header 0 (elf(5), PN_XNUM). */
static int header_count(
	const struct image *img, const Elf64_Ehdr *elf, uint64_t *count, struct err *e)
{
	const Elf64_Shdr *section;

	*count = elf->e_phnum;
	if (elf->e_phnum != PN_XNUM)
		return 0;
	section = meta_at(img, elf->e_shoff, sizeof(*section));
	if (!section || elf->e_shoff % 8)
		return image_bad(img, e, "its section header is out of place");
	*count = section->sh_info;
	return 0;
}

static const Elf64_Phdr *program_headers(
	const struct image *img, const uint8_t *head, uint64_t *count, struct err *e)
{
	const Elf64_Phdr *headers;
	Elf64_Ehdr elf;

	memcpy(&elf, head, sizeof(elf));
	if (elf.e_ident[EI_CLASS] != ELFCLASS64 || elf.e_ident[EI_DATA] != ELFDATA2LSB ||
		elf.e_type != ET_CORE || elf.e_machine != EM_X86_64 ||
		elf.e_phentsize != sizeof(*headers)) {
		image_bad(img, e, "it is not a core file of this architecture");
		return NULL;
	}
	if (header_count(img, &elf, count, e) < 0)
		return NULL;
	headers = meta_at(img, elf.e_phoff, *count * sizeof(*headers));
	if (!headers || elf.e_phoff % 8) {
		image_bad(img, e, "its program headers are out of place");
		return NULL;
	}
	return headers;
}

/* Keep a note of ours in memory of its own: notes are aligned to 4, our structs to 8. */
static int keep_note(
	struct image *img, uint32_t type, const void *data, size_t size, struct err *e)
{
	const struct note_rule *rule;
	void *copy;

	/* Type numbers of the future are additions that the compat bits allow. */
	if (type >= IMAGE_NOTE_MAX || !note_rules[type].size)
		return 0;
	rule = &note_rules[type];
	if (img->notes[type].data)
		return image_bad(img, e, "it has note %u twice", type);
	if (size % rule->size || (rule->count && size != rule->count * rule->size))
		return image_bad(img, e, "note %u has a size of %zu bytes, elements have %zu",
			type, size, rule->size);
	copy = image_memory_get(size);
	if (!copy)
		return image_bad(img, e, "no memory for note %u", type);
	memcpy(copy, data, size);
	img->notes[type].data = copy;
	img->notes[type].size = size;
	return 0;
}

static int parse_notes(struct image *img, const char *data, uint64_t left, struct err *e)
{
	while (left) {
		Elf64_Nhdr note;
		uint64_t name, size;

		if (left < sizeof(note))
			return image_bad(img, e, "its notes end too early");
		memcpy(&note, data, sizeof(note));
		name = sizeof(note);
		size = name + align_up(note.n_namesz, 4) + align_up(note.n_descsz, 4);
		if (size > left)
			return image_bad(img, e, "its notes end too early");
		if (note.n_namesz == sizeof(IMAGE_OWNER) &&
			!memcmp(data + name, IMAGE_OWNER, sizeof(IMAGE_OWNER)) &&
			keep_note(img, note.n_type - IMAGE_NOTE_BASE,
				data + name + align_up(note.n_namesz, 4), note.n_descsz, e) < 0)
			return -1;
		data += size;
		left -= size;
	}
	return 0;
}

static int take_notes(struct image *img, const void *data, uint64_t size, struct err *e)
{
	const struct image_note_data *strings = &img->notes[IMAGE_NOTE_STRINGS];

	if (parse_notes(img, data, size, e) < 0)
		return -1;
	img->strings = strings->data;
	img->strings_size = strings->data ? strings->size : 0;
	if (img->strings_size && img->strings[img->strings_size - 1])
		return image_bad(img, e, "its strings do not end");
	return 0;
}

/* Find the three parts that the program headers locate, each of which must be there once. */
static int find_parts(struct image *img, const Elf64_Phdr *headers, uint64_t count,
	const Elf64_Phdr *parts[3], struct err *e)
{
	static const uint32_t types[3] = {PT_NOTE, IMAGE_PT_EXTENTS, IMAGE_PT_HASHES};

	memset(parts, 0, 3 * sizeof(*parts));
	for (uint64_t i = 0; i < count; i++) {
		for (int t = 0; t < 3; t++) {
			if (headers[i].p_type != types[t])
				continue;
			if (parts[t])
				return image_bad(
					img, e, "program header %#x is there twice", types[t]);
			parts[t] = &headers[i];
		}
	}
	for (int t = 0; t < 3; t++) {
		if (!parts[t])
			return image_bad(img, e, "program header %#x is missing", types[t]);
		if (!(t == 2 ? hashes_at : meta_at)(
			    img, parts[t]->p_offset, parts[t]->p_filesz) ||
			parts[t]->p_offset % (t ? 8 : 4))
			return image_bad(
				img, e, "program header %#x is out of place", types[t]);
	}
	return 0;
}

static int take_parts(struct image *img, const Elf64_Phdr *parts[3], struct err *e)
{
	const Elf64_Phdr *notes = parts[0], *extents = parts[1], *hashes = parts[2];

	if (extents->p_filesz % sizeof(struct image_extent) ||
		hashes->p_filesz % IMAGE_HASH_SIZE)
		return image_bad(img, e, "its extents or hashes have a wrong size");
	img->extents = meta_at(img, extents->p_offset, extents->p_filesz);
	img->extent_count = extents->p_filesz / sizeof(struct image_extent);
	img->hashes = hashes_at(img, hashes->p_offset, hashes->p_filesz);
	img->hash_count = hashes->p_filesz / IMAGE_HASH_SIZE;
	return take_notes(
		img, meta_at(img, notes->p_offset, notes->p_filesz), notes->p_filesz, e);
}

/* Where in its file @x has its bytes. */
static int check_pack(const struct image *img, const struct image_extent *x, struct err *e)
{
	const struct image_pack *pack = image_pack_of(img, x);

	if (!pack || !(img->super.incompat & IMAGE_INCOMPAT_PACKS))
		return image_bad(
			img, e, "the extent at %#" PRIx64 " is in no pack", x->address);
	if (!pack->blocks || pack->blocks > IMAGE_PACK_BLOCKS || !pack->used ||
		pack->used > pack->blocks * IMAGE_BLOCK || pack->used > pack->size ||
		pack->size - pack->used >= IMAGE_BLOCK || !pack->method ||
		pack->method >= IMAGE_PACK_METHODS)
		return image_bad(img, e,
			"the pack of the extent at %#" PRIx64 " is out of range", x->address);
	if (x->skip > pack->blocks || x->blocks > (uint32_t)pack->blocks - x->skip)
		return image_bad(img, e, "the extent at %#" PRIx64 " is larger than its pack",
			x->address);
	return 0;
}

/* What extents may be of: the same for all of an image. */
struct extent_bounds {
	size_t sources, objects;
};

static int check_place(const struct image *img, const struct image_extent *x,
	const struct extent_bounds *bounds, struct err *e)
{
	uint64_t offset, size, end;

	if (x->kind == IMAGE_EXTENT_PACKED && check_pack(img, x, e) < 0)
		return -1;
	offset = image_extent_place(img, x, &size);
	if (image_check_hashes(img, x, e) < 0)
		return -1;
	if ((x->kind == IMAGE_EXTENT_DATA && offset % IMAGE_BLOCK) ||
		offset < IMAGE_HEAD_SIZE || __builtin_add_overflow(offset, size, &end))
		return image_bad(
			img, e, "the extent at %#" PRIx64 " is out of place", x->address);
	if (!x->source && end > img->super.meta_offset)
		return image_bad(img, e, "the extent at %#" PRIx64 " is outside of the file",
			x->address);
	if (!x->source)
		return 0;
	if (x->source >= bounds->sources || !(img->super.incompat & IMAGE_INCOMPAT_CHAIN))
		return image_bad(img, e, "the extent at %#" PRIx64 " is in no known checkpoint",
			x->address);
	return 0;
}

static int check_object(
	const struct image *img, const struct image_extent *x, size_t objects, struct err *e)
{
	if (img->super.file_kind == IMAGE_FILE_PROCESS ? x->object != 0
						       : !x->object || x->object > objects)
		return image_bad(img, e, "the extent at %#" PRIx64 " is of object %u of %zu",
			x->address, x->object, objects);
	return 0;
}

static int check_extent(const struct image *img, const struct image_extent *x,
	const struct extent_bounds *bounds, struct err *e)
{
	uint64_t end;

	if (!x->blocks || x->address % IMAGE_BLOCK ||
		__builtin_add_overflow(x->address, (uint64_t)x->blocks * IMAGE_BLOCK, &end))
		return image_bad(
			img, e, "the extent at %#" PRIx64 " is out of range", x->address);
	if (check_object(img, x, bounds->objects, e) < 0)
		return -1;
	if (x->kind == IMAGE_EXTENT_ZERO && !x->source)
		return 0;
	if (!image_extent_is_stored(x))
		return image_bad(img, e, "the extent at %#" PRIx64 " is of unknown kind %u",
			x->address, x->kind);
	return check_place(img, x, bounds, e);
}

static int check_extents(const struct image *img, struct err *e)
{
	const struct extent_bounds bounds = {
		.sources = image_note_count(img, IMAGE_NOTE_CHAIN, sizeof(struct image_chain)),
		.objects =
			image_note_count(img, IMAGE_NOTE_OBJECTS, sizeof(struct image_object)),
	};
	uint32_t object = 0;
	uint64_t end = 0;

	for (size_t i = 0; i < img->extent_count; i++) {
		const struct image_extent *x = &img->extents[i];

		if (check_extent(img, x, &bounds, e) < 0)
			return -1;
		if (x->object < object || (x->object == object && x->address < end))
			return image_bad(img, e,
				"the extent at %#" PRIx64 " is out of order or overlaps",
				x->address);
		object = x->object;
		end = x->address + (uint64_t)x->blocks * IMAGE_BLOCK;
	}
	return 0;
}

/* As the file of a process is named. */
static bool is_process_name(const char *name)
{
	return *name && !name[strspn(name, "0123456789")];
}

static int check_chain_names(const struct image *img, size_t links, struct err *e)
{
	const uint32_t *names;
	size_t count;

	names = image_note_array(img, IMAGE_NOTE_CHAIN_NAMES, uint32_t, &count);
	if (count && (img->super.file_kind != IMAGE_FILE_PROCESS ||
			     !(img->super.incompat & IMAGE_INCOMPAT_PEERS)))
		return image_bad(img, e, "its chain may not have other processes' files");
	if (count > links)
		return image_bad(img, e, "its chain has more names than entries");
	for (size_t i = 0; i < count; i++)
		if (names[i] && (!i || !is_process_name(image_string(img, names[i]))))
			return image_bad(img, e, "its chain has a file \"%s\"",
				image_string(img, names[i]));
	return 0;
}

static int check_chain(const struct image *img, struct err *e)
{
	const struct image_chain *chain;
	size_t count;

	chain = image_note_array(img, IMAGE_NOTE_CHAIN, struct image_chain, &count);
	if (count && memcmp(chain[0].checkpoint_id, img->super.checkpoint_id,
			     sizeof(chain[0].checkpoint_id)))
		return image_bad(img, e, "its chain does not start with itself");
	for (size_t i = 0; i < count; i++)
		if (chain[i].file && (!i || chain[i].file >= IMAGE_FILES ||
					     !(img->super.incompat & IMAGE_INCOMPAT_FILES)))
			return image_bad(
				img, e, "its chain has a file of number %u", chain[i].file);
	return check_chain_names(img, count, e);
}

/* Read [@from, @to) of the metadata, whose checksum is @sum. */
static int read_part(
	struct image *img, uint64_t from, uint64_t to, const uint8_t *sum, struct err *e)
{
	char *at = (char *)img->meta + (from - img->super.meta_offset);
	uint8_t hash[IMAGE_HASH_SIZE];

	if (pread_all(img->fd, at, to - from, from, img->path, e) < 0)
		return -1;
	hash128(at, to - from, hash);
	return memcmp(hash, sum, sizeof(hash))
		       ? image_bad(img, e, "its metadata is damaged (checksum)")
		       : 0;
}

/* All of it but the hashes, if that can be checked. */
static int read_parts(struct image *img, const uint8_t *head, struct err *e)
{
	uint64_t from = img->super.meta_offset, to = from + img->super.meta_size, hashes_end;
	struct image_parts parts;

	if (!(img->super.compat & IMAGE_COMPAT_PARTS))
		return read_part(img, from, to, img->super.meta_hash, e);
	memcpy(&parts, head + IMAGE_PARTS_OFFSET, sizeof(parts));
	if (!parts.hashes_size || parts.hashes_offset < from ||
		__builtin_add_overflow(parts.hashes_offset, parts.hashes_size, &hashes_end) ||
		hashes_end > to)
		return image_bad(img, e, "its hashes are out of place");
	img->unread_offset = parts.hashes_offset;
	img->unread_size = parts.hashes_size;
	return read_part(img, from, parts.hashes_offset, parts.before, e) < 0 ||
			       read_part(img, hashes_end, to, parts.behind, e) < 0
		       ? -1
		       : 0;
}

int image_read_meta(struct image *img, const uint8_t *head, struct err *e)
{
	const Elf64_Phdr *headers, *parts[3];
	uint64_t count;

	/* Not xmalloc(): the size comes from the file. */
	img->meta = image_memory_get(img->super.meta_size + 1);
	if (!img->meta)
		return image_bad(img, e, "no memory for its %" PRIu64 " bytes of metadata",
			img->super.meta_size);
	if (read_parts(img, head, e) < 0)
		return -1;
	headers = program_headers(img, head, &count, e);
	if (!headers || find_parts(img, headers, count, parts, e) < 0 ||
		take_parts(img, parts, e) < 0)
		return -1;
	if (check_chain(img, e) < 0 || image_check_tables(img, e) < 0)
		return -1;
	return check_extents(img, e);
}

uint64_t image_hashes_offset(const struct image *img)
{
	return img->super.meta_offset + (img->hashes - (const uint8_t *)img->meta);
}
