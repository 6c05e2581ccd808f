/*
 * core.c - the entry point of this program, and the functions that it hands out: patching the
 * system calls of a library's text, marking ranges that a checkpoint leaves out, and finding
 * the break and the parts of libc that are mapped.
 */
#include "bringup/core.h"

#include <elf.h>
#include <linux/errno.h>
#include <stdbool.h>
#include <linux/fs.h>
#include <sys/mman.h>

#include "bringup/hook.h"
#include "bringup/site.h"
#include "bringup/space.h"
#include "shared/raw.h"
#include "shared/address_windows.h"

site_entry core_entry_ldso, core_entry_libc;
void _start(const struct core_options *options, struct core_functions *functions);

static struct site_room room;
static int libc_sites;

/* Sites there must at least be, for glibc 2.36 to 2.42. A text that has fewer is not one we
 * know, and its calls would go past us. */
struct minimum {
	int nr, count;
};

static const struct minimum ldso_minima[] = {{SYS_mmap, 1}, {SYS_munmap, 1}, {SYS_brk, 1}};
static const struct minimum libc_minima[] = {{SYS_mmap, 1}, {SYS_munmap, 1}, {SYS_mremap, 1},
	{SYS_brk, 1}, {SYS_rt_sigaction, 1}, {SYS_rt_sigprocmask, 10}, {SYS_openat, 2},
	{SYS_socket, 1}, {SYS_pipe2, 1}, {SYS_eventfd2, 1}, {SYS_dup, 1}, {SYS_fcntl, 3},
	{SITE_VARIABLE, 1}};

#define MAX_MINIMA 16

/* Nobody runs this text yet: no need to patch with care. Returns how many sites, or -errno. */
static int patch_sites(uint8_t *text, size_t size, int (*wanted)(int), site_entry *entry,
	const struct minimum *minima, unsigned minimum_count)
{
	int found[MAX_MINIMA] = {0};
	uint8_t *trampoline;
	struct site site;
	int total = 0;

	for (const uint8_t *at = text; !site_find(at, text + size, wanted, &site); total++) {
		trampoline = site_prepare(&site, entry, &room);
		if (!trampoline)
			return -ENOEXEC;
		site_jump(site.start, trampoline, site.start);
		for (unsigned i = 0; i < minimum_count; i++)
			found[i] += minima[i].nr == site.nr;
		at = site_end(&site);
	}
	for (unsigned i = 0; i < minimum_count; i++)
		if (found[i] < minima[i].count)
			return -ENOEXEC;
	return total;
}

static int patch_text(uint8_t *text, size_t size, int (*wanted)(int), site_entry *entry,
	const struct minimum *minima, unsigned minimum_count)
{
	int r = raw(SYS_mprotect, text, size, PROT_READ | PROT_WRITE);
	int sites;

	if (r < 0)
		return r;
	sites = patch_sites(text, size, wanted, entry, minima, minimum_count);
	r = raw(SYS_mprotect, text, size, PROT_READ | PROT_EXEC);
	return r < 0 ? r : sites;
}

/* The file that is mapped at @at, all of whose headers are on its first page. */
static void mark_image(uintptr_t at)
{
	const Elf64_Ehdr *e = (const Elf64_Ehdr *)at;
	const Elf64_Phdr *h = (const Elf64_Phdr *)(at + e->e_phoff);
	uintptr_t base = e->e_type == ET_DYN ? at : 0;

	for (unsigned i = 0; i < e->e_phnum; i++) {
		uintptr_t start = base + h[i].p_vaddr, page = start & ~4095ul;

		if (h[i].p_type == PT_LOAD)
			space_mark(page, start + h[i].p_memsz - page);
	}
}

static int patch_ldso(uint8_t *text, size_t size)
{
	int r;

	mark_image(LOWER_RUNTIME);
	mark_image(LOWER_LDSO);
	r = patch_text(text, size, hook_wants_of_ldso, core_entry_ldso, ldso_minima,
		sizeof(ldso_minima) / sizeof(ldso_minima[0]));

	return r < 0 ? r : 0;
}

/* "/libc.so.6" or "/libc-2.31.so" at the end of the file's name. */
static bool is_libc(int fd)
{
	char path[32] = "/proc/self/fd/", name[512];
	unsigned n = 14, divisor = 1;
	long length;

	while (fd / divisor >= 10)
		divisor *= 10;
	for (; divisor; divisor /= 10)
		path[n++] = '0' + fd / divisor % 10;
	length = raw(SYS_readlink, path, name, sizeof(name) - 1);
	if (raw_failed(length))
		return false;
	name[length] = 0;
	while (length > 0 && name[length - 1] != '/')
		length--;
	return raw_starts(name + length, "libc.so.6") || raw_starts(name + length, "libc-2.");
}

/*
 * Other libraries that move the break by an instruction of their own would move the program's,
 * and its heap would be theirs, too: UCX's libucm has one, for the functions it puts in place
 * of the libc's. Its other calls come by syscall(3). Most libraries have none, and stay as the
 * file is.
 */
static void patch_break(uint8_t *text, size_t size)
{
	static const uint8_t code[] = {0xb8, SYS_brk, 0, 0, 0, 0x0f, 0x05};

	/* Not ld.so's to fail for: it has no room for so many sites, or no memory. */
	if (site_bytes(text, text + size, code, sizeof(code)))
		(void)patch_text(text, size, hook_wants_of_library, core_entry_libc, NULL, 0);
}

/* ld.so's first mapping of a library is as large as all its segments together, and may be that
 * of its code: what lies behind the end of the file cannot be read. */
static long size_in_file(long size, int fd, long offset)
{
	long end = raw(SYS_lseek, fd, 0, SEEK_END);

	if (raw_failed(end) || end <= offset)
		return 0;
	return size < end - offset ? size : end - offset;
}

void core_mapped(long address, long size, int prot, int fd, long offset)
{
	if (!(prot & PROT_EXEC) || fd < 0)
		return;
	if (libc_sites || !is_libc(fd)) {
		patch_break((uint8_t *)address, size_in_file(size, fd, offset) & ~4095l);
		return;
	}
	libc_sites = patch_text((uint8_t *)address, size & ~4095l, hook_wants, core_entry_libc,
		libc_minima, sizeof(libc_minima) / sizeof(libc_minima[0]));
}

static void driver_hint(uintptr_t address, size_t size)
{
	space_hint(SPACE_DRIVER, address, size);
}

static int driver_keep(uintptr_t start, uintptr_t end)
{
	return space_keep(SPACE_DRIVER, start, end);
}

static long driver_mmap(long addr, long size, long prot, long flags, long fd, long offset)
{
	const long args[6] = {addr, size, prot, flags, fd, offset};

	return hook_mmap(SPACE_DRIVER, args);
}

static int count_libc_sites(void)
{
	return libc_sites;
}

/* Runs once, before the lower half does. */
void _start(const struct core_options *options, struct core_functions *functions)
{
	hook_fd_base = options->fd_base;
	room.next = (uint8_t *)LOWER_PATCHES;
	room.end = room.next + LOWER_PATCH_SIZE;
	functions->patch_ldso = patch_ldso;
	functions->driver_mmap = driver_mmap;
	functions->driver_hint = driver_hint;
	functions->driver_keep = driver_keep;
	functions->driver_taken = space_taken();
	functions->libc_sites = count_libc_sites;
	functions->place_next = hook_place_next;
	functions->space = space_lists();
	functions->mark = space_mark;
	space_mark(LOWER_SHARED, LOWER_SHARED_SIZE);
	space_mark(LOWER_PATCHES, LOWER_PATCH_SIZE);
	space_mark(LOWER_STACK, LOWER_STACK_SIZE);
	mark_image(LOWER_CORE);
}
