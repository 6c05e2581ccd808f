/* The real libraries, loaded into the lower half when their stubs are first called. */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "bringup/core.h"
#include "lower/runtime.h"

#define LIBRARIES 16

static void *handles[LIBRARIES];

void *library_symbol(const char *name)
{
	void *symbol = NULL;

	for (unsigned i = 0; i < LIBRARIES && handles[i] && !symbol; i++)
		symbol = dlsym(handles[i], name);
	return symbol;
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

int library_load(struct lower_library *library)
{
	struct link_map *map;
	size_t i = 0;
	void *handle;
	int r;

	/* A library that is loaded again after a restart goes where it was. */
	if (library->start)
		table->core->place_next(library->start);
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
	r = gate_patch(map->l_addr, map->l_ld);
	if (r < 0) {
		snprintf(table->failure, sizeof(table->failure), "patching imports of %s",
			map->l_name);
		return r;
	}
	for (const char *name = library->names; *name; name += strlen(name) + 1, i++) {
		void *target = dlsym(handle, name);

		library->targets[i] = target ? target : library->missing;
	}
	remember_handle(handle);
	return 0;
}
