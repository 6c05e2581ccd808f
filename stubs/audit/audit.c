/*
 * audit.c - how a program comes to load the stubs: a library for LD_AUDIT that gives ld.so the
 * stub's file when it has found the real library, wherever that was: by soname, by a name with
 * another version, by an absolute path, through RPATH, RUNPATH or the cache, as a copy that a
 * Python wheel carries under a name of its own. Where there is no real library, there is none
 * with trecr either. doc/split-process.md has the measurements behind the choice.
 *
 * It has no libc: an audit library's dependencies would all be loaded a second time.
 */
#include <elf.h>
#include <linux/fcntl.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shared/raw.h"
#include "stubs/audit/object_symbols.h"

#define EXPORT   __attribute__((visibility("default")))
#define PATH_MAX 4096

EXPORT unsigned la_version(unsigned version);
EXPORT char *la_objsearch(const char *name, uintptr_t *cookie, unsigned flag);
EXPORT unsigned la_objopen(struct link_map *map, Lmid_t space, uintptr_t *cookie);

#ifndef STUBS
#define STUBS "/stubs" /* folder of the stubs in ours */
#endif

#define FORTRAN "libmpi_mpifh.so.40"

/* The standard ABI of MPI 5, version 1: its library, by the name that MPICH 5.0.0 has given it, too; a function that drafts of it
 * did not have; and one of MPICH's for itself. */
#define STANDARD       "libmpi_abi.so."
#define STANDARD_STUB  "libmpi_abi.so.1"
#define STANDARD_FINAL "MPI_Abi_set_fortran_booleans"
#define STANDARD_MPICH "MPIR_Err_create_code"

static struct library {
	const char *name; /* of the file, without version */
	const char *stub; /* below our folder */
	const char *
		found; /* exported buffer in the stub for the real one's path, NULL: it has none */
	const char *kind;  /* as in TRECR_STUBS */
	int has_insiders;  /* see below */
	const char *newer; /* a function of libraries that have more than the stub, and stay */
	const char *below[2]; /* what the lower half has instead, beside it; NULL: it itself */
	char path[PATH_MAX];  /* of the stub */
	char real[PATH_MAX];  /* found last */
	char lower[PATH_MAX]; /* for the lower half */
} libraries[] = {
	{.name = "libcuda.so",
		.stub = STUBS "/libcuda.so.1",
		.found = "trecr_cuda_found",
		.kind = "gpu"},
	{.name = "libnvidia-ml.so",
		.stub = STUBS "/libnvidia-ml.so.1",
		.found = "trecr_nvml_found",
		.kind = "gpu"},
	/* One library, by its own name and by the ABI's. */
	{.name = "libmpich.so.12",
		.stub = STUBS "/libmpich.so.12",
		.found = "trecr_mpi_found",
		.kind = "mpi"},
	{.name = "libmpi.so.12",
		.stub = STUBS "/libmpich.so.12",
		.found = "trecr_mpi_found",
		.kind = "mpi"},
	/* The standard ABI of MPI 5, of MPICH and of libraries derived from it, which have their own ABI beside it. */
	{.name = STANDARD,
		.stub = STUBS "/" STANDARD_STUB,
		.found = "trecr_mpi_found",
		.kind = "mpi",
		.below = {"/libmpich.so.12", "/libmpi.so.12"}},
	/* Open MPI 2 to 5. */
	{.name = "libmpi.so.40",
		.stub = STUBS "/libmpi.so.40",
		.found = "trecr_mpi_found",
		.kind = "mpi",
		.has_insiders = 1},
	/* Its functions for Fortran; those of Open MPI 5 are more. This name is the same for all compilers. */
	{.name = FORTRAN,
		.stub = STUBS "/" FORTRAN,
		.kind = "mpi",
		.has_insiders = 1,
		.newer = "ompi_session_init_f"},
};

#define LIBRARIES (sizeof(libraries) / sizeof(libraries[0]))

static int same_text(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

/* Whether a file is called @name, with any version; or with a part of its hash after the stem,
 * as auditwheel does: libcuda-1a2b3c4d.so.1. */
static int is_called(const char *file, const char *name)
{
	while (*file && *file == *name)
		file++, name++;
	if (*file == '-' && *name == '.')
		for (file++; (*file >= '0' && *file <= '9') || (*file >= 'a' && *file <= 'f');)
			file++;
	return raw_starts(file, name);
}

static int is_same(const char *a, const char *b, size_t n)
{
	while (n && *a == *b)
		a++, b++, n--;
	return !n;
}

static const char *file_name(const char *path)
{
	const char *name = path;

	for (; *path; path++)
		if (*path == '/')
			name = path + 1;
	return name;
}

/* "START-END ... PATH\n" of /proc/self/maps: PATH if we are in [START, END), else NULL. */
static char *path_of_line(char *line, uintptr_t here)
{
	uintptr_t bounds[2] = {0};

	for (int i = 0; i < 2; i++, line++)
		for (; *line != '-' && *line != ' '; line++)
			bounds[i] = bounds[i] << 4 |
				    (*line <= '9' ? *line - '0' : *line - 'a' + 10);
	if (here < bounds[0] || here >= bounds[1])
		return NULL;
	while (*line && *line != '/')
		line++;
	return line;
}

/* Reads a line into @line, cut to @size; 0 at the end of the file. */
static int read_line(int fd, char *line, size_t size)
{
	size_t n = 0;
	char c;

	while (raw(SYS_read, fd, &c, 1) == 1) {
		if (c == '\n') {
			line[n] = 0;
			return 1;
		}
		if (n + 1 < size)
			line[n++] = c;
	}
	return 0;
}

/* Folder of this library, from /proc/self/maps: read once, and only when a stub is due. */
static const char *our_folder(void)
{
	static char line[PATH_MAX + 128], *folder;
	int fd;

	if (folder)
		return folder;
	fd = raw(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return NULL;
	while (!folder && read_line(fd, line, sizeof(line)))
		folder = path_of_line(line, (uintptr_t)our_folder);
	raw(SYS_close, fd); /* read only */
	if (folder)
		*(char *)(file_name(folder) - 1) = 0;
	return folder;
}

static int join_path(char *to, const char *a, const char *b)
{
	size_t n = raw_length(a), m = raw_length(b);

	if (n + m >= PATH_MAX)
		return -1;
	raw_copy(to, a, n);
	raw_copy(to + n, b, m + 1);
	return 0;
}

unsigned la_version(unsigned version)
{
	return version < LAV_CURRENT ? version : LAV_CURRENT;
}

/* Reads a string that ends in 0, as read_line() does a line. */
static int read_string(int fd, char *text, size_t size)
{
	size_t n = 0;
	char c;

	while (raw(SYS_read, fd, &c, 1) == 1) {
		if (n + 1 < size)
			text[n++] = c;
		if (!c)
			return 1;
	}
	return 0;
}

/* The value of TRECR_STUBS that the program was started with, of which kinds libraries are
 * exchanged: "gpu", which it is without the variable, "mpi" or "gpu,mpi". */
static const char *chosen_kinds(void)
{
	static const char variable[] = "TRECR_STUBS=";
	static char text[64];
	static const char *kinds;
	int fd;

	if (kinds)
		return kinds;
	fd = raw(SYS_openat, AT_FDCWD, "/proc/self/environ", O_RDONLY | O_CLOEXEC, 0);
	while (fd >= 0 && !kinds && read_string(fd, text, sizeof(text)))
		if (raw_starts(text, variable))
			kinds = text + sizeof(variable) - 1;
	if (fd >= 0)
		raw(SYS_close, fd); /* read only */
	return kinds ? kinds : (kinds = "gpu");
}

static int is_chosen(const char *kind)
{
	for (const char *k = chosen_kinds(); *k; k++)
		if (raw_starts(k, kind))
			return 1;
	return 0;
}

/*
 * Libraries of the driver's that use the GPU past the stubs: nothing of what they do there
 * could be saved, and the one for the engines for video and JPEG waits for ever for what an
 * engine is to write (580). They are not there: MPI libraries load OpenCL only to look, and
 * nvJPEG decodes without an engine, as on a GPU that has none.
 */
static struct refused {
	const char *name, *reason;
	int told;
} refused[] = {
	{.name = "libnvidia-opencl.so",
		.reason = "OpenCL finds no NVIDIA GPU here: it cannot be checkpointed "
			  "(trecr-run --gpu=off leaves it alone)"},
	{.name = "libnvcuvid.so",
		.reason = "the engines of the GPU for video and JPEG are not used here: they "
			  "cannot be checkpointed (trecr-run --gpu=off leaves them alone)"},
};

#define REFUSED (sizeof(refused) / sizeof(refused[0]))

static int is_refused(const char *name, const char *file)
{
	struct refused *r = refused;

	while (r < refused + REFUSED && !is_called(file, r->name))
		r++;
	if (r == refused + REFUSED || file == name || raw_failed(raw(SYS_access, name, R_OK)) ||
		!is_chosen("gpu"))
		return 0;
	if (!r->told++)
		raw_complain(r->reason);
	return 1;
}

/* Whether the file at @path has @name among its names. */
static int has_name(const char *path, const char *name)
{
	size_t length = raw_length(name) + 1;
	long fd = raw(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0), size = -1, at = -1;
	int found = 0;

	if (raw_failed(fd))
		return 0;
	size = raw(SYS_lseek, fd, 0, SEEK_END);
	if (size > 0)
		at = raw6(SYS_mmap, 0, size, PROT_READ, MAP_PRIVATE, fd, 0);
	raw(SYS_close, fd); /* read only */
	if (size <= 0 || raw_failed(at))
		return 0;
	for (const char *c = (const char *)at; !found && c + length <= (const char *)at + size;
		c++)
		found = *c == *name && is_same(c, name, length);
	raw(SYS_munmap, at, size); /* its own */
	return found;
}

/*
 * A library for Fortran of a version that the stub for Fortran does not know uses what Open MPI's library has for itself,
 * and a stub has not. So do Open MPI's bindings for C++ (MPI::Comm), which MPI 3.0 has dropped. Programs that have either
 * come to load them first, and then have the library, too. (A stub for Fortran that has been loaded before them is right
 * over either.)
 *
 * All that is compiled by mpicxx, and libraries that are linked with it, have the library for C++, too, but use no
 * bindings. They have the stub, which has the symbols that the library for C++ needs (stubs/mpi/openmpi/cxx_library.c).
 */
static int insider_seen, insiders_told, cxx_seen, bindings_seen;

#define CXX "libmpi_cxx.so.40"

static int is_newer(const char *name, const char *file)
{
	for (unsigned i = 0; i < LIBRARIES; i++)
		if (libraries[i].newer && is_called(file, libraries[i].name))
			return has_name(name, libraries[i].newer);
	return 0;
}

static int is_insider(const char *name, const char *file)
{
	int cxx = is_called(file, CXX);

	if (file == name || (!cxx && !is_called(file, FORTRAN)) ||
		raw_failed(raw(SYS_access, name, R_OK)) || !is_chosen("mpi"))
		return 0;
	cxx_seen |= cxx;
	return cxx ? bindings_seen : is_newer(name, file);
}

static void tell_of_insider(const char *message)
{
	if (!insiders_told++)
		raw_complain(message);
}

/* Whether the real library must stay. */
static int has_insider(const struct library *l)
{
	static const char message[] =
		"Open MPI's bindings for C++, and its library for Fortran of version 5, need "
		"its "
		"library beside them: it is in the program, as without --mpi=lower";

	if (!l->has_insiders || !insider_seen)
		return 0;
	tell_of_insider(message);
	return 1;
}

/* Whether Open MPI's library is in the lower half already. */
static int is_below(void)
{
	for (unsigned i = 0; i < LIBRARIES; i++)
		if (libraries[i].has_insiders && libraries[i].found && *libraries[i].real)
			return 1;
	return 0;
}

static void see_insider(void)
{
	static const char message[] =
		"Open MPI's library for Fortran of version 5 is loaded after its library is in "
		"the lower half, where it does not find it: use --mpi=whole";

	insider_seen = 1;
	if (is_below())
		tell_of_insider(message);
}

/*
 * Finds what the lower half is to load in the place of @name. Of MPICH's library for the standard ABI that is the one
 * for its own ABI, which is of the same build: 0 where there is none, or where it is the library of another project.
 */
static int find_lower(struct library *l, const char *name)
{
	static const char message[] =
		"a libmpi_abi.so can be in the lower half if it is MPICH 5's and has its "
		"libmpi.so.12 beside it: this one is in the program, as with --mpi=whole";
	static int told;
	size_t folder = file_name(name) - name - 1;
	int is_mpich;

	if (!l->below[0])
		return join_path(l->lower, name, "") == 0;
	is_mpich = has_name(name, STANDARD_FINAL) && has_name(name, STANDARD_MPICH);
	for (unsigned i = 0; i < 2 && is_mpich; i++) {
		if (folder + raw_length(l->below[i]) >= PATH_MAX)
			continue;
		raw_copy(l->lower, name, folder);
		raw_copy(l->lower + folder, l->below[i], raw_length(l->below[i]) + 1);
		if (!raw_failed(raw(SYS_access, l->lower, R_OK)))
			return 1;
	}
	if (!told++)
		raw_complain(message);
	return 0;
}

/*
 * Called with what was asked for, then with each place where it might be. Only a path that
 * leads to a file is exchanged, so the search ends as it would have. ld.so keeps the path it
 * had in mind as the object's name, so the stub cannot find its neighbour by $ORIGIN.
 */
char *la_objsearch(const char *name, uintptr_t *cookie, unsigned flag)
{
	static char crossing[PATH_MAX];
	const char *file = file_name(name), *folder;

	if (same_text(name, "libtrecr-crossing.so")) {
		folder = our_folder();
		return folder && !join_path(crossing, folder, "/libtrecr-crossing.so")
			       ? crossing
			       : (char *)name;
	}
	if (is_refused(name, file))
		return NULL;
	if (is_insider(name, file))
		see_insider();
	for (unsigned i = 0; i < LIBRARIES; i++) {
		struct library *l = &libraries[i];

		if (!is_called(file, l->name) || file == name ||
			raw_failed(raw(SYS_access, name, R_OK)) || !is_chosen(l->kind) ||
			has_insider(l) || (!same_text(name, l->path) && !find_lower(l, name)))
			continue;
		folder = our_folder();
		if (!folder || join_path(l->path, folder, l->stub) < 0 ||
			raw_failed(raw(SYS_access, l->path, R_OK)))
			continue;
		if (!same_text(name, l->path))
			join_path(l->real, name, "");
		return l->path;
	}
	return (char *)name;
}

/* The variable @name of an object. */
static char *find_variable(const struct link_map *map, const char *name)
{
	const struct symbols all = symbols_of(map);

	for (size_t i = 0; i < all.count; i++)
		if (all.first[i].st_shndx && same_text(symbol_name(&all, i), name))
			return (char *)map->l_addr + all.first[i].st_value;
	return NULL;
}

/* Of namespace MPI, and none of those that mpi.h makes each object in C++ refer to. */
static int is_binding(const char *name)
{
	static const char *const in_all[] = {
		"_ZN3MPI4CommC1Ev",
		"_ZN3MPI4CommC2Ev",
		"_ZN3MPI8Datatype4FreeEv",
		"_ZN3MPI3Win4FreeEv",
	};

	if (!raw_starts(name, "_ZN3MPI") && !raw_starts(name, "_ZNK3MPI"))
		return 0;
	for (unsigned i = 0; i < sizeof(in_all) / sizeof(in_all[0]); i++)
		if (same_text(name, in_all[i]))
			return 0;
	return 1;
}

/* Whether an object uses bindings of another one: a function, or a variable, of which a program at a fixed address has a
 * copy. */
static int uses_bindings(const struct link_map *map)
{
	const struct symbols all = symbols_of(map);

	for (size_t i = 0; i < all.count; i++) {
		const Elf64_Sym *s = &all.first[i];

		if ((!s->st_shndx || ELF64_ST_TYPE(s->st_info) == STT_OBJECT) &&
			is_binding(symbol_name(&all, i)))
			return 1;
	}
	return 0;
}

static void see_bindings(const struct link_map *map)
{
	static const char message[] =
		"Open MPI's bindings for C++ are used by what is loaded after its library is "
		"in "
		"the lower half, where they do not find it: use --mpi=whole";

	if (!is_chosen("mpi") || is_called(file_name(map->l_name), CXX) || !uses_bindings(map))
		return;
	bindings_seen = 1;
	if (cxx_seen && is_below())
		tell_of_insider(message);
}

/* Tell the stub where the real library is, for the lower half to load that one. */
unsigned la_objopen(struct link_map *map, Lmid_t space, uintptr_t *cookie)
{
	see_bindings(map);
	for (unsigned i = 0; i < LIBRARIES; i++) {
		struct library *l = &libraries[i];
		char *found;

		if (!l->found || !*l->real ||
			(!same_text(map->l_name, l->path) && !same_text(map->l_name, l->real)))
			continue;
		found = find_variable(map, l->found);
		if (found)
			join_path(found, l->lower, "");
	}
	return 0; /* no interest in its calls */
}
