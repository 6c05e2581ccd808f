/*
 * Calls of the driver that come without a crossing: wrappers of pthread_getspecific and pthread_setspecific
 * that switch the FS base.
 *
 * A program may get function pointers from the driver that nothing of ours stands in front of
 * (libcudart's check of the driver by the table D4082055 is left as it is). Such a function
 * runs on the upper FS base and may reach pthread_getspecific and pthread_setspecific, where
 * the upper libc's thread would be taken for one of the lower libc's. So in the library's
 * import slots of these two stand functions that see to the right FS base.
 *
 * No thread-local storage may be touched before it is set: this file is built without stack
 * protector.
 */
#include <elf.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "lower/runtime.h"
#include "shared/raw.h"

/* The first word of thread-local storage is its own address, with glibc and musl. Reading it
 * takes an eighth of what the instruction does that asks for the FS base (4 ns), and the driver
 * comes here twice a launch. */
static uint64_t this_fs(void)
{
	return *(const uint64_t __seg_fs *)0;
}

/* The lower FS base of the thread that runs on the upper @fs; 0 when it never crossed. */
static uint64_t lower_fs(uint64_t fs)
{
	struct crossing_head *head =
		*(struct crossing_head **)(fs + table->upper_thread_offset);

	return head ? head->lower_fs : 0;
}

static void *fs_wrapper_getspecific(pthread_key_t key)
{
	uint64_t fs = this_fs(), lower;
	void *value;

	if (in_lower_window(fs))
		return pthread_getspecific(key);
	lower = lower_fs(fs);
	if (!lower)
		return NULL;
	raw_write_fs(lower);
	value = pthread_getspecific(key);
	raw_write_fs(fs);
	return value;
}

static int fs_wrapper_setspecific(pthread_key_t key, const void *value)
{
	uint64_t fs = this_fs(), lower;
	int r;

	if (in_lower_window(fs))
		return pthread_setspecific(key, value);
	lower = lower_fs(fs);
	if (!lower)
		return EINVAL;
	raw_write_fs(lower);
	r = pthread_setspecific(key, value);
	raw_write_fs(fs);
	return r;
}

static const struct {
	const char *name;
	void *wrapper;
} fs_wrappers[] = {
	{"pthread_getspecific", fs_wrapper_getspecific},
	{"pthread_setspecific", fs_wrapper_setspecific},
};

struct dynamic {
	const Elf64_Rela *relocations[2];
	size_t counts[2];
	const Elf64_Sym *symbols;
	const char *strings;
};

static struct dynamic read_dynamic(const Elf64_Dyn *d)
{
	struct dynamic r = {0};

	for (; d->d_tag != DT_NULL; d++) {
		switch (d->d_tag) {
		case DT_JMPREL:
			r.relocations[0] = (void *)d->d_un.d_ptr;
			break;
		case DT_PLTRELSZ:
			r.counts[0] = d->d_un.d_val / sizeof(Elf64_Rela);
			break;
		case DT_RELA:
			r.relocations[1] = (void *)d->d_un.d_ptr;
			break;
		case DT_RELASZ:
			r.counts[1] = d->d_un.d_val / sizeof(Elf64_Rela);
			break;
		case DT_SYMTAB:
			r.symbols = (void *)d->d_un.d_ptr;
			break;
		case DT_STRTAB:
			r.strings = (void *)d->d_un.d_ptr;
			break;
		}
	}
	return r;
}

static void *fs_wrapper_of(const char *name)
{
	for (size_t i = 0; i < sizeof(fs_wrappers) / sizeof(fs_wrappers[0]); i++)
		if (!strcmp(fs_wrappers[i].name, name))
			return fs_wrappers[i].wrapper;
	return NULL;
}

/* The slot may lie in what was made read-only after relocation; it is left writable then. */
static int set_slot(void **slot, void *value)
{
	uintptr_t page = (uintptr_t)slot & ~4095ul;

	if (mprotect((void *)page, 4096, PROT_READ | PROT_WRITE))
		return -errno;
	*slot = value;
	return 0;
}

int patch_pthread_imports(uintptr_t base, const void *dynamic)
{
	struct dynamic d = read_dynamic(dynamic);

	for (int table_nr = 0; table_nr < 2; table_nr++) {
		for (size_t i = 0; i < d.counts[table_nr]; i++) {
			const Elf64_Rela *r = &d.relocations[table_nr][i];
			const Elf64_Sym *symbol = &d.symbols[ELF64_R_SYM(r->r_info)];
			unsigned type = ELF64_R_TYPE(r->r_info);
			void *wrapper;
			int e;

			if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT)
				continue;
			wrapper = fs_wrapper_of(d.strings + symbol->st_name);
			if (!wrapper)
				continue;
			e = set_slot((void **)(base + r->r_offset), wrapper);
			if (e < 0)
				return e;
		}
	}
	return 0;
}
