/* The real libraries, loaded into the lower half when their stubs are first called. */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "bringup/core.h"
#include "lower/runtime.h"

#define LIBRARIES 16
#define PLACES                                                                                 \
	3 /* jumps from there to the patches reach no further (shared/address_windows.h) */

static void *handles[LIBRARIES];

/* What callers are to have for @name of the library behind @handle. */
static void *symbol_of(void *handle, const char *name)
{
	void *clock = mpi_clock_symbol(name);

	if (clock)
		return clock;
	return openmpi_is(handle) ? openmpi_symbol(name) : dlsym(handle, name);
}

void *library_symbol(const char *name)
{
	void *symbol = NULL;

	for (unsigned i = 0; i < LIBRARIES && handles[i] && !symbol; i++)
		symbol = symbol_of(handles[i], name);
	return symbol;
}

/* In the order in which ld.so calls them. The first that was linked into it calls what it has registered by atexit(3). */
static void call_exit_functions(const struct link_map *map)
{
	const ElfW(Addr) *functions = NULL;
	size_t count = 0;

	for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_FINI_ARRAY)
			functions = (const ElfW(Addr) *)(map->l_addr + d->d_un.d_ptr);
		if (d->d_tag == DT_FINI_ARRAYSZ)
			count = d->d_un.d_val / sizeof(*functions);
	}
	while (functions && count)
		((void (*)(void))functions[--count])();
}

void library_exit(const char *name)
{
	struct link_map *map;

	for (unsigned i = 0; i < LIBRARIES && handles[i]; i++)
		if (dlsym(handles[i], name) && !dlinfo(handles[i], RTLD_DI_LINKMAP, &map))
			call_exit_functions(map);
}

static void remember_handle(void *handle)
{
	unsigned i = 0;

	while (i < LIBRARIES - 1 && handles[i] && handles[i] != handle)
		i++;
	handles[i] = handle;
}

static int find_extent(struct dl_phdr_info *info, size_t size, void *argument)
{
	struct lower_library *library = argument;

	if (info->dlpi_addr != library->start)
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		uintptr_t end = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr +
				info->dlpi_phdr[i].p_memsz;

		if (info->dlpi_phdr[i].p_type == PT_LOAD && end > library->end)
			library->end = end;
	}
	return 1;
}

static int move_code(struct dl_phdr_info *info, size_t size, void *argument)
{
	const struct lower_library *library = argument;
	int r = 0;

	if (info->dlpi_addr != library->start)
		return 0;
	for (int i = 0; i < info->dlpi_phnum && !r; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + p->p_vaddr;

		if (p->p_type == PT_LOAD && (p->p_flags & (PF_X | PF_W)) == PF_X)
			r = huge_code(start, start + p->p_memsz);
	}
	return r;
}

/*
 * Where a library goes: after a restart where it was, as the program may hold addresses in it. So the first
 * ones have places of their own: behind other libraries, the address would depend on their sizes and on that
 * of ld.so's cache, which the next update of the system changes.
 */
static uintptr_t place_for(const struct lower_library *library)
{
	static uintptr_t places;
	uintptr_t place = (library->start - LOWER_LIBRARIES) / LOWER_LIBRARY_SIZE;

	if (!library->start)
		return places < PLACES ? LOWER_LIBRARIES + places++ * LOWER_LIBRARY_SIZE : 0;
	if (place < PLACES && place >= places)
		places = place + 1;
	else if (place >= PLACES && !places)
		places =
			1; /* another build of the driver: what the program has of the first is there */
	return library->start;
}

int library_load(struct lower_library *library)
{
	struct link_map *map;
	int again = library->start != 0;
	size_t i = 0;
	void *handle;
	int r;

	table->core->place_next(place_for(library));
	handle = dlopen(library->soname, RTLD_NOW | RTLD_LOCAL);
	table->core->place_next(0);
	if (!handle || dlinfo(handle, RTLD_DI_LINKMAP, &map)) {
		snprintf(table->failure, sizeof(table->failure), "%s", dlerror());
		return -ENOENT;
	}
	if (dlsym(handle, "trecr_cuda_found") || dlsym(handle, "trecr_nvml_found") ||
		dlsym(handle, "trecr_mpi_found")) {
		snprintf(table->failure, sizeof(table->failure),
			"%s is the stub, not the library", map->l_name);
		return -ENOENT;
	}
	library->start = map->l_addr;
	library->end = 0;
	dl_iterate_phdr(find_extent, library);
	if (!in_lower_window(library->start)) {
		snprintf(table->failure, sizeof(table->failure), "%s lies outside the window",
			map->l_name);
		return -ENOEXEC;
	}
	r = library->huge_code ? dl_iterate_phdr(move_code, library) : 0;
	if (r < 0) {
		snprintf(table->failure, sizeof(table->failure), "no memory for the code of %s",
			map->l_name);
		return r;
	}
	r = patch_pthread_imports(map->l_addr, map->l_ld);
	if (r < 0) {
		snprintf(table->failure, sizeof(table->failure), "patching imports of %s",
			map->l_name);
		return r;
	}
	if (openmpi_is(handle) && openmpi_begin(handle) < 0) {
		snprintf(table->failure, sizeof(table->failure),
			"%s is of a version of Open MPI that is not known", map->l_name);
		return -ENOEXEC;
	}
	for (const char *name = library->names; *name; name += strlen(name) + 1, i++) {
		void *target = symbol_of(handle, name);

		if (!target && openmpi_is(handle))
			target = openmpi_unsupported(name);
		if (!target && again && library->keeps_functions &&
			library->targets[i] != library->missing) {
			snprintf(table->failure, sizeof(table->failure),
				"%s lacks %s, which the program may use", map->l_name, name);
			return -ENOEXEC;
		}
		library->targets[i] = target ? target : library->missing;
	}
	remember_handle(handle);
	return openmpi_is(handle) ? 1 : 0;
}
