/*
 * start.c - what execve(2) does for a program, done for a second one in the same process: its
 * files and ld.so are mapped, a stack with arguments, environment and auxiliary vector is
 * built, and ld.so is entered.
 */
#include "bringup/start.h"

#include <elf.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "bringup/core.h"
#include "bringup/elf_map.h"
#include "shared/raw.h"
#include "shared/address_windows.h"

#define HWCAP2_FSGSBASE (1 << 1)
#define PR_AUXV         0x41555856 /* PR_GET_AUXV */
#define MAX_AUXV        64
/* Room for descriptors of the lower half: drivers have a few dozen. */
#define FD_ROOM     1024
#define FD_BASE_MAX 65536

struct auxv {
	Elf64_auxv_t entries[MAX_AUXV];
	unsigned count;
};

/* clone.S */
long lower_clone(long flags, void *stack, uintptr_t entry);

/* ---- the process as it is ---- */

/* Of a process that is not dumpable, /proc/self/auxv is closed, and the call is new (6.4). */
static int read_auxv(struct auxv *a)
{
	long n = raw(SYS_prctl, PR_AUXV, a->entries, sizeof(a->entries), 0, 0);
	int fd;

	if (raw_failed(n)) {
		fd = raw(SYS_openat, AT_FDCWD, "/proc/self/auxv", O_RDONLY | O_CLOEXEC, 0);
		if (fd < 0)
			return fd;
		n = raw(SYS_read, fd, a->entries, sizeof(a->entries));
		raw(SYS_close, fd); /* read only */
		if (raw_failed(n))
			return n;
	}
	if (n > (long)sizeof(a->entries))
		return -E2BIG;
	a->count = n / sizeof(a->entries[0]);
	return 0;
}

static uint64_t auxv_get(const struct auxv *a, uint64_t type)
{
	for (unsigned i = 0; i < a->count; i++)
		if (a->entries[i].a_type == type)
			return a->entries[i].a_un.a_val;
	return 0;
}

/*
 * Descriptors of the lower half begin where the program's cannot come, at its soft limit; or,
 * when that is too high for the kernel's table to be cheap or cannot be exceeded, below it.
 */
static int choose_fd_base(void)
{
	struct rlimit limit;

	if (raw_failed(raw(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, &limit)))
		return 512;
	if (limit.rlim_cur <= FD_BASE_MAX && limit.rlim_max >= limit.rlim_cur + FD_ROOM)
		return limit.rlim_cur;
	if (limit.rlim_cur > FD_BASE_MAX + FD_ROOM)
		return FD_BASE_MAX;
	return limit.rlim_cur > 2 * FD_ROOM ? limit.rlim_cur - FD_ROOM : limit.rlim_cur * 3 / 4;
}

/*
 * Let the kernel's table of descriptors reach to the base now. Later, with threads, it would
 * wait for all processors to be done with the old table (10 ms); if there are threads already,
 * this does. Nothing is lost when it fails: the hooks report what they cannot do.
 */
static void expand_descriptors(const char *any_file, int base)
{
	struct rlimit old, wide;
	long fd = raw(SYS_openat, AT_FDCWD, any_file, O_RDONLY | O_CLOEXEC, 0), high;

	if (raw_failed(fd) || raw_failed(raw(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, &old)))
		return;
	wide = (struct rlimit){old.rlim_max, old.rlim_max};
	raw(SYS_prlimit64, 0, RLIMIT_NOFILE, &wide, 0);
	high = raw(SYS_fcntl, fd, F_DUPFD_CLOEXEC, base + FD_ROOM / 2);
	raw(SYS_prlimit64, 0, RLIMIT_NOFILE, &old, 0);
	if (!raw_failed(high))
		raw(SYS_close, high);
	raw(SYS_close, fd);
}

/* ---- the first thread's stack, as the kernel would lay it out at exec ---- */

struct stack {
	char *top; /* what is pushed next goes below */
};

static char *push_bytes(struct stack *s, const void *bytes, size_t n)
{
	s->top -= n;
	raw_copy(s->top, bytes, n);
	return s->top;
}

static char *push_string(struct stack *s, const char *text)
{
	return push_bytes(s, text, raw_length(text) + 1);
}

/* PREFIX=TEXT */
static char *push_variable(struct stack *s, const char *prefix, const char *text)
{
	push_string(s, text);
	return push_bytes(s, prefix, raw_length(prefix));
}

/* What the program's ld.so is told is not meant for the lower half's. */
static bool is_for_ldso(const char *variable)
{
	return raw_starts(variable, "LD_") || raw_starts(variable, "GLIBC_TUNABLES=");
}

static void replace_auxv(struct auxv *a, const struct elf_image *runtime,
	const struct elf_image *ldso, const char *name, const char *random)
{
	for (unsigned i = 0; i < a->count; i++) {
		Elf64_auxv_t *x = &a->entries[i];

		switch (x->a_type) {
		case AT_PHDR:
			x->a_un.a_val = runtime->headers;
			break;
		case AT_PHENT:
			x->a_un.a_val = sizeof(Elf64_Phdr);
			break;
		case AT_PHNUM:
			x->a_un.a_val = runtime->header_count;
			break;
		case AT_ENTRY:
			x->a_un.a_val = runtime->entry;
			break;
		case AT_BASE:
			x->a_un.a_val = ldso->base;
			break;
		case AT_EXECFN:
			x->a_un.a_val = (uintptr_t)name;
			break;
		case AT_RANDOM:
			x->a_un.a_val = (uintptr_t)random;
			break;
		}
	}
}

/*
 * Variables first, then the words argc, argv, environment, auxiliary vector. The tunable keeps
 * glibc from registering restartable sequences: a thread that borrows another's thread-local
 * storage would read the processor number of that one.
 */
static uint64_t *build_stack(const struct lower_start *how, const struct elf_image *runtime,
	const struct elf_image *ldso, struct auxv *a)
{
	struct stack s = {(char *)LOWER_STACK + LOWER_STACK_SIZE - 64};
	char *name = push_string(&s, how->runtime), *random, *tunables, *path = NULL;
	unsigned count = 0, kept = 0, words;
	uint64_t *w, *variables;

	while (how->environment[count])
		count++;
	tunables = push_string(&s, "GLIBC_TUNABLES=glibc.pthread.rseq=0");
	if (how->library_path)
		path = push_variable(&s, "LD_LIBRARY_PATH=", how->library_path);
	s.top -= 16;
	random = s.top;
	if (raw(SYS_getrandom, random, 16, 0) != 16)
		raw_zero(random, 16); /* a weaker stack guard in the lower half, no more */

	/* The pointers end up below the strings, whose size is not known yet: until then they
	 * are kept at the far end of the stack. A quarter of it is left for the thread. */
	variables = (uint64_t *)LOWER_STACK;
	for (unsigned i = 0; i < count; i++) {
		const char *variable = how->environment[i];

		if (!is_for_ldso(variable) &&
			s.top - raw_length(variable) >
				(char *)LOWER_STACK + LOWER_STACK_SIZE / 4)
			variables[kept++] = (uintptr_t)push_string(&s, variable);
	}
	variables[kept++] = (uintptr_t)tunables;
	if (path)
		variables[kept++] = (uintptr_t)path;
	replace_auxv(a, runtime, ldso, name, random);

	words = 3 + kept + 1 + 2 * a->count;
	w = (uint64_t *)(((uintptr_t)s.top - words * 8) & ~15ul);
	w[0] = 1;
	w[1] = (uintptr_t)name;
	w[2] = 0;
	raw_copy(w + 3, variables, kept * 8);
	w[3 + kept] = 0;
	raw_copy(w + 4 + kept, a->entries, a->count * sizeof(a->entries[0]));
	raw_zero(variables, kept * 8);
	return w;
}

/* ---- */

static int reserve_range(uintptr_t at, size_t size, int prot)
{
	long r = raw(SYS_mmap, at, size, prot,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	return raw_failed(r) ? r : 0;
}

/* A macro because it leaves the function that it is used in. */
#define STEP(text, call)                                                                       \
	do {                                                                                   \
		*step = (text);                                                                \
		r = (call);                                                                    \
		if (r < 0)                                                                     \
			return r;                                                              \
	} while (0)

static int map_all(const struct lower_start *how, struct elf_image *runtime,
	struct elf_image *ldso, struct core_functions **functions, const char **step)
{
	struct core_options options = {
		.fd_base = how->fd_base ? how->fd_base : choose_fd_base()};
	struct lower_table *table = (struct lower_table *)LOWER_SHARED;
	struct elf_image core;
	int r;

	expand_descriptors(how->core, options.fd_base);
	STEP("mapping the lower half's core", elf_map(how->core, LOWER_CORE, &core));
	STEP("mapping memory for patches", reserve_range(LOWER_PATCHES, LOWER_PATCH_SIZE,
						   PROT_READ | PROT_WRITE | PROT_EXEC));
	STEP("mapping memory for the table shared by the halves",
		reserve_range(LOWER_SHARED, LOWER_SHARED_SIZE, PROT_READ | PROT_WRITE));
	/* A child of fork finds nothing there. */
	STEP("setting the shared table apart",
		raw(SYS_madvise, LOWER_SHARED, LOWER_SHARED_SIZE, 18 /* MADV_WIPEONFORK */));
	STEP("mapping memory for the lower half's stack",
		reserve_range(LOWER_STACK, LOWER_STACK_SIZE, PROT_READ | PROT_WRITE));
	*functions = (struct core_functions *)(table + 1);
	((core_entry *)core.entry)(&options, *functions);
	table->size = sizeof(*table);
	table->core = *functions;
	table->fd_base = options.fd_base;
	table->space = (uintptr_t)(*functions)->space;

	STEP("mapping trecr-lower", elf_map(how->runtime, LOWER_RUNTIME, runtime));
	STEP("mapping the lower half's ld.so",
		elf_map(how->ldso ? how->ldso : runtime->interpreter, LOWER_LDSO, ldso));
	STEP("patching the lower half's ld.so (a version not known)",
		(*functions)->patch_ldso((uint8_t *)ldso->text, ldso->text_size));
	return 0;
}

int lower_start(const struct lower_start *how, struct lower_table **out, const char **step)
{
	struct lower_table *table = (struct lower_table *)LOWER_SHARED;
	struct elf_image runtime, ldso;
	struct core_functions *core;
	struct auxv auxv;
	int r;

	STEP("reading the auxiliary vector", read_auxv(&auxv));
	STEP("using the FS base instructions (kernel 5.9 or newer)",
		auxv_get(&auxv, AT_HWCAP2) & HWCAP2_FSGSBASE ? 0 : -ENOSYS);
	r = map_all(how, &runtime, &ldso, &core, step);
	if (r < 0)
		return r;
	STEP("starting the lower half's first thread",
		lower_clone(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
				    CLONE_SYSVSEM,
			build_stack(how, &runtime, &ldso, &auxv), ldso.entry));
	raw_wait(&table->state, 0);
	if (table->state != 1) {
		*step = table->failure;
		return -ENOEXEC;
	}
	STEP("patching the lower half's libc (a version not known)", core->libc_sites());
	*out = table;
	return 0;
}
