/*
 * The vdso is the kernel's own code in the program's memory, and the program holds addresses
 * in it. When this kernel's is the same, it is moved to where it was. Otherwise it is put
 * elsewhere, and in the old place the old code stays with a jump at each of its functions.
 */
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "supervisor/state/restore_plan.h"
#include "supervisor/state/vdso_restore.h"

/* Where the pieces wait while the address space is emptied: far up in the window. */
#define PARKING (LOADER_RANGE + LOADER_RANGE_SIZE / 2)

/* Room left free on both sides of a new place: a heap or a stack may grow. */
#define CLEARANCE (16ul << 20)

static bool is_piece(const struct vma *v)
{
	return !strcmp(v->name, "[vdso]") || !strncmp(v->name, "[vvar", 5);
}

static bool is_image_piece(const struct image_region *g)
{
	return g->kind == IMAGE_REGION_VDSO || g->kind == IMAGE_REGION_VVAR;
}

/* First and last address of this kernel's pieces. */
static void span_of(const struct vma_list *vmas, uint64_t *start, uint64_t *end)
{
	*start = *end = 0;
	for (size_t i = 0; i < vmas->count; i++) {
		if (!is_piece(&vmas->v[i]))
			continue;
		if (!*end)
			*start = vmas->v[i].start;
		*end = vmas->v[i].end;
	}
}

/* Whether the image's pieces are this kernel's, moved by one distance. */
static bool same_layout(const struct restore_plan *p, int64_t *distance)
{
	const struct image_region *g;
	size_t count, at = 0;
	bool first = true;

	g = image_note_array(p->img, IMAGE_NOTE_REGIONS, struct image_region, &count);
	for (size_t i = 0; i < p->vmas->count; i++) {
		const struct vma *v = &p->vmas->v[i];

		if (!is_piece(v))
			continue;
		while (at < count && !is_image_piece(&g[at]))
			at++;
		if (at == count || g[at].end - g[at].start != v->end - v->start ||
			strcmp(image_string(p->img, g[at].name), v->name))
			return false;
		if (first)
			*distance = g[at].start - v->start;
		else if (*distance != (int64_t)(g[at].start - v->start))
			return false;
		first = false;
		at++;
	}
	while (at < count && !is_image_piece(&g[at]))
		at++;
	return at == count && !first;
}

/* A free place for @size bytes between the image's regions. */
static uint64_t find_place(const struct restore_plan *p, uint64_t size)
{
	const struct image_region *g;
	uint64_t from = LOADER_RANGE + LOADER_RANGE_SIZE;
	size_t count;

	g = image_note_array(p->img, IMAGE_NOTE_REGIONS, struct image_region, &count);
	for (size_t i = 0; i < count; i++) {
		if (g[i].end <= from)
			continue;
		if (g[i].start > from && g[i].start - from > size + 2 * CLEARANCE)
			return g[i].start - CLEARANCE - size;
		from = g[i].end;
	}
	return 0;
}

static void park_vdso(struct restore_plan *p, uint64_t start)
{
	for (size_t i = 0; i < p->vmas->count; i++) {
		const struct vma *v = &p->vmas->v[i];
		uint64_t size = v->end - v->start;

		if (is_piece(v))
			BATCH_ADD(&p->memory, "move the vdso", SYS_mremap, v->start, size, size,
				MREMAP_MAYMOVE | MREMAP_FIXED, PARKING + (v->start - start));
	}
}

static void place_vdso(struct restore_plan *p, uint64_t start, uint64_t to)
{
	for (size_t i = 0; i < p->vmas->count; i++) {
		const struct vma *v = &p->vmas->v[i];
		uint64_t size = v->end - v->start, at = to + (v->start - start);

		if (!is_piece(v))
			continue;
		BATCH_ADD(&p->rest, "move the vdso", SYS_mremap, PARKING + (v->start - start),
			size, size, MREMAP_MAYMOVE | MREMAP_FIXED, at);
		if (!strcmp(v->name, "[vdso]"))
			p->vdso_code = at;
	}
}

static int check_threads(const struct restore_plan *p, struct err *e)
{
	const struct image_thread *t;
	size_t count;

	t = image_note_array(p->img, IMAGE_NOTE_THREADS, struct image_thread, &count);
	for (size_t i = 0; i < count; i++)
		if (t[i].flags & IMAGE_THREAD_IN_VDSO)
			return err_set(e, 0,
				"thread %d was stopped inside the vdso of another kernel; take "
				"the checkpoint again, or restart on the kernel it was taken "
				"on",
				t[i].tid);
	return 0;
}

static const struct image_region *old_vdso(const struct restore_plan *p)
{
	const struct image_region *g;
	size_t count;

	g = image_note_array(p->img, IMAGE_NOTE_REGIONS, struct image_region, &count);
	for (size_t i = 0; i < count; i++)
		if (g[i].kind == IMAGE_REGION_VDSO)
			return &g[i];
	return NULL;
}

int restore_plan_vdso(struct restore_plan *p, struct err *e)
{
	uint64_t start, end;
	int64_t distance = 0;

	span_of(p->vmas, &start, &end);
	if (!end)
		return err_set(e, 0, "this kernel gives the new process no vdso");
	park_vdso(p, start);
	if (!p->other_vdso && same_layout(p, &distance)) {
		place_vdso(p, start, start + distance);
		return 0;
	}
	p->other_vdso = true;
	if (check_threads(p, e))
		return -1;
	p->vdso_new = find_place(p, end - start);
	if (!p->vdso_new)
		return err_set(e, 0, "there is no room for this kernel's vdso");
	place_vdso(p, start, p->vdso_new);
	return 0;
}

void restore_plan_old_vdso(struct restore_plan *p)
{
	const struct image_region *old = old_vdso(p);
	struct batch_call *c;
	uint64_t size;

	if (!p->other_vdso || !old)
		return;
	size = old->end - old->start;
	c = BATCH_ADD(&p->memory, "map memory", SYS_mmap, old->start, size,
		PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	c->check = BATCH_EQUALS;
	c->expect = old->start;
}

/* The dynamic symbols of a vdso: it is loaded at 0, with addresses equal to file offsets. */
struct vdso_symbols {
	const uint8_t *data;
	size_t size;
	const Elf64_Sym *sym;
	size_t count;
	const char *strings;
	size_t strings_size;
};

static bool is_inside(size_t size, uint64_t offset, uint64_t length)
{
	return offset <= size && length <= size - offset;
}

static int find_symbols(const uint8_t *data, size_t size, struct vdso_symbols *s)
{
	const Elf64_Ehdr *eh = (const void *)data;
	const Elf64_Shdr *sh;

	if (size < sizeof(*eh) || memcmp(eh->e_ident, ELFMAG, SELFMAG) ||
		!is_inside(size, eh->e_shoff, (uint64_t)eh->e_shnum * sizeof(*sh)))
		return -1;
	sh = (const void *)(data + eh->e_shoff);
	for (int i = 0; i < eh->e_shnum; i++) {
		const Elf64_Shdr *str;

		if (sh[i].sh_type != SHT_DYNSYM || sh[i].sh_link >= eh->e_shnum)
			continue;
		str = &sh[sh[i].sh_link];
		if (!is_inside(size, sh[i].sh_offset, sh[i].sh_size) ||
			!is_inside(size, str->sh_offset, str->sh_size) || !str->sh_size ||
			data[str->sh_offset + str->sh_size - 1])
			return -1;
		*s = (struct vdso_symbols){data, size, (const void *)(data + sh[i].sh_offset),
			sh[i].sh_size / sizeof(Elf64_Sym), (const char *)data + str->sh_offset,
			str->sh_size};
		return 0;
	}
	return -1;
}

static const char *symbol_name(const struct vdso_symbols *s, size_t i)
{
	return s->sym[i].st_name < s->strings_size ? s->strings + s->sym[i].st_name : "";
}

static const Elf64_Sym *find_function(const struct vdso_symbols *s, const char *name)
{
	for (size_t i = 0; i < s->count; i++)
		if (ELF64_ST_TYPE(s->sym[i].st_info) == STT_FUNC &&
			!strcmp(symbol_name(s, i), name))
			return &s->sym[i];
	return NULL;
}

/* jmp *0(%rip), and the address: changes no register. */
#define JUMP_SIZE 14

static void write_jump(uint8_t *at, uint64_t target)
{
	static const uint8_t jump[6] = {0xff, 0x25};

	memcpy(at, jump, sizeof(jump));
	memcpy(at + sizeof(jump), &target, sizeof(target));
}

int vdso_redirect(uint8_t *old, size_t old_size, const uint8_t *new, size_t new_size,
	uint64_t new_at, struct err *e)
{
	struct vdso_symbols from, to;

	if (find_symbols(old, old_size, &from) || find_symbols(new, new_size, &to))
		return err_set(e, 0, "cannot read the symbols of the vdso");
	for (size_t i = 0; i < from.count; i++) {
		const Elf64_Sym *sym = &from.sym[i], *target;
		const char *name = symbol_name(&from, i);

		if (ELF64_ST_TYPE(sym->st_info) != STT_FUNC || !sym->st_value)
			continue;
		target = find_function(&to, name);
		if (!target)
			return err_set(e, 0,
				"this kernel's vdso lacks %s, which the program may have bound",
				name);
		if (!is_inside(old_size, sym->st_value, JUMP_SIZE) ||
			(sym->st_size && sym->st_size < JUMP_SIZE))
			return err_set(
				e, 0, "%s of the vdso is too short to be redirected", name);
		write_jump(old + sym->st_value, new_at + target->st_value);
	}
	return 0;
}
