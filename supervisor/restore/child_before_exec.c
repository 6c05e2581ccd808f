/*
 * child_before_exec.c - what runs in the new process itself: descriptors of the image and of
 * mapped files are opened at numbers that are free, its own are put in place, and it executes
 * the file.
 */
#include "supervisor/restore/child_before_exec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "lib/util.h"
#include "supervisor/fd/objects_restore.h"
#include "supervisor/fd/reopen_despite_mode.h"
#include "supervisor/fd/trusted_path.h"
#include "supervisor/fd_kinds/removed_directory.h"

static const struct image *process_image(const struct restore_child *r)
{
	return r->c->processes[r->index];
}

/* How many descriptors of each kind @f tells of. */
static void count_restart_fds(struct restart_fds *f, const struct checkpoint *c, size_t index)
{
	const struct image *img = c->processes[index];

	f->sources = img->source_count + 1;
	f->modules = image_note_count(img, IMAGE_NOTE_MODULES, sizeof(struct image_module));
	f->objects = image_note_count(c->job, IMAGE_NOTE_OBJECTS, sizeof(struct image_object));
	f->threads =
		image_note_count(img, IMAGE_NOTE_THREAD_FDS, sizeof(struct image_thread_fd));
}

static size_t count_slots(const struct restart_fds *f)
{
	return f->sources + RESTART_FD_MODULE_SLOTS * f->modules + f->threads + f->objects;
}

size_t restore_child_shared_size(const struct checkpoint *c, size_t index)
{
	struct restart_fds f;

	count_restart_fds(&f, c, index);
	return align_up(
		sizeof(f) + count_slots(&f) * sizeof(int), _Alignof(struct restart_fds));
}

void restore_child_init(
	struct restore_child *r, const struct checkpoint *c, size_t index, void *shared)
{
	struct restart_fds *f = shared;

	r->c = c;
	r->index = index;
	r->fds = f;
	count_restart_fds(f, c, index);
	f->zero = f->exe = -1;
	for (size_t i = 0; i < count_slots(f); i++)
		f->fd[i] = -1;
}

/* The files that memory is to come from. A descriptor opened without close-on-exec outlasts
 * the execve to come. */
static int open_sources(struct restore_child *r, struct err *e)
{
	const struct image *img = process_image(r);
	struct restart_fds *f = r->fds;

	f->zero = open("/dev/zero", O_RDONLY);
	if (f->zero < 0)
		return err_set(e, errno, "cannot open /dev/zero");
	for (size_t i = 0; i < img->extent_count; i++) {
		const struct image_extent *x = &img->extents[i];
		int *slot;

		if (x->kind != IMAGE_EXTENT_DATA || x->object)
			continue;
		BUG_ON(x->source >= f->sources);
		slot = restart_fd_source_slot(f, x->source);
		if (*slot < 0)
			*slot = dup(image_source_fd(img, x));
		if (*slot < 0)
			return err_set(e, errno, "cannot keep the image open");
	}
	return 0;
}

/* Which a trial maps private. */
static bool maps_writable(const struct image_region *g, bool trial)
{
	return g->kind == IMAGE_REGION_SHARED_FILE && g->max_prot & PROT_WRITE && !trial;
}

static void prepare_modules(const struct image *img, bool trial)
{
	const struct image_region *regions;
	const struct image_module *modules;
	cleanup_free bool *prepared = NULL; /* those for reading, and those for both */
	size_t count, module_count;

	regions = image_note_array(img, IMAGE_NOTE_REGIONS, struct image_region, &count);
	modules = image_note_array(img, IMAGE_NOTE_MODULES, struct image_module, &module_count);
	prepared = xcalloc(2 * module_count, sizeof(*prepared));
	for (size_t i = 0; i < count; i++) {
		const struct image_region *g = &regions[i];
		bool writable = maps_writable(g, trial), *done;

		if ((g->kind != IMAGE_REGION_FILE && g->kind != IMAGE_REGION_SHARED_FILE) ||
			!g->module || g->module > module_count)
			continue;
		done = &prepared[2 * (g->module - 1) + writable];
		if (!*done)
			fd_reopen_prepare(image_string(img, modules[g->module - 1].path),
				writable ? O_RDWR : O_RDONLY);
		*done = true;
	}
}

/* A FIFO is opened for both first, so that no open waits for the other end. */
static int first_flags(const struct image_description *x)
{
	return x->kind == IMAGE_FD_FIFO ? O_RDWR : x->flags;
}

void restore_child_prepare_files(const struct checkpoint *c, bool trial)
{
	const struct image_description *x;
	size_t count;

	x = image_note_array(c->job, IMAGE_NOTE_DESCRIPTIONS, struct image_description, &count);
	for (size_t i = 0; i < count && !trial; i++)
		if (x[i].path)
			fd_reopen_prepare(image_string(c->job, x[i].path), first_flags(&x[i]));
	for (size_t i = 0; i < c->process_count; i++)
		prepare_modules(c->processes[i], trial);
}

static int open_modules(struct restore_child *r, struct err *e)
{
	const struct image *img = process_image(r);
	const struct image_region *regions;
	const struct image_module *modules;
	size_t count, module_count;

	regions = image_note_array(img, IMAGE_NOTE_REGIONS, struct image_region, &count);
	modules = image_note_array(img, IMAGE_NOTE_MODULES, struct image_module, &module_count);
	for (size_t i = 0; i < count; i++) {
		const struct image_region *g = &regions[i];
		bool writable = maps_writable(g, r->trial);
		const char *path;
		int *slot;

		if (g->kind != IMAGE_REGION_FILE && g->kind != IMAGE_REGION_SHARED_FILE)
			continue;
		if (!g->module || g->module > module_count)
			return err_set(
				e, 0, "the image names a mapped file that it does not have");
		slot = restart_fd_module_slot(r->fds, g->module - 1, writable);
		if (*slot >= 0)
			continue;
		path = image_string(img, modules[g->module - 1].path);
		*slot = fd_reopen(path, writable ? O_RDWR : O_RDONLY);
		/* It may come from a helper. */
		if (*slot < 0 || fcntl(*slot, F_SETFD, 0))
			return err_set(
				e, errno, "cannot open %s, which the program has mapped", path);
	}
	return 0;
}

static int open_objects(struct restore_child *r, struct fd_restore *fds, struct err *e)
{
	const struct image_region *regions;
	size_t count;

	regions = image_note_array(
		process_image(r), IMAGE_NOTE_REGIONS, struct image_region, &count);
	for (size_t i = 0; i < count; i++) {
		const struct image_region *g = &regions[i];
		int *slot;

		if (g->kind != IMAGE_REGION_SHARED && g->kind != IMAGE_REGION_PRIVATE)
			continue;
		if (!g->object || g->object > r->fds->objects)
			return err_set(
				e, 0, "the image names a shared object that it does not have");
		slot = restart_fd_object_slot(r->fds, g->object - 1);
		if (*slot < 0)
			*slot = fd_restore_object(fds, g->object,
				fd_maps_writable(process_image(r), g->object), e);
		if (*slot < 0)
			return -1;
	}
	return 0;
}

/* Where an image does not carry its memory the file was found to be there. */
static int open_exe(struct restore_child *r, struct err *e)
{
	const struct image_process *p;
	const char *exe;
	size_t count;

	if (!r->stays || r->foreign_exe ||
		checkpoint_owner(r->c, r->index, IMAGE_SHARED_MEMORY) != r->index)
		return 0;
	p = image_note_array(
		process_image(r), IMAGE_NOTE_PROCESS, struct image_process, &count);
	exe = image_string(process_image(r), p->exe);
	r->fds->exe = fd_open_trusted(exe, O_RDONLY);
	return r->fds->exe < 0 ? err_set(e, errno, "cannot open the program's file %s", exe)
			       : 0;
}

/* The numbers of @f that the restored descriptors may have to push aside: into @slots, of
 * struct buf's kind (int *). */
static void add_slots(struct restart_fds *f, struct buf *slots)
{
	size_t count = f->sources + RESTART_FD_MODULE_SLOTS * f->modules + f->threads;
	int *slot = &f->zero;

	buf_push(slots, int *, &slot);
	slot = &f->exe;
	if (f->exe >= 0)
		buf_push(slots, int *, &slot);
	for (size_t i = 0; i < count; i++) {
		slot = &f->fd[i];
		if (f->fd[i] >= 0)
			buf_push(slots, int *, &slot);
	}
}

static bool shares_table(const struct restore_child *a, size_t with)
{
	return checkpoint_owner(a->c, a->index, IMAGE_SHARED_FILES) == with;
}

/* For threads to put into tables of their own. */
static int open_thread_files(struct restore_child *r, struct fd_restore *fds, struct err *e)
{
	const struct image_thread_fd *own;
	size_t count;

	own = image_note_array(
		process_image(r), IMAGE_NOTE_THREAD_FDS, struct image_thread_fd, &count);
	for (size_t i = 0; i < count; i++) {
		int *slot = restart_fd_thread_slot(r->fds, i);

		if (own[i].fd < 0)
			continue;
		*slot = fd_restore_open(fds, own[i].description, e);
		if (*slot < 0)
			return -1;
	}
	return 0;
}

static int open_files(
	struct restore_child *r, struct fd_restore *fds, struct buf *slots, struct err *e)
{
	if (open_sources(r, e) || open_modules(r, e) || open_exe(r, e) ||
		open_thread_files(r, fds, e))
		return -1;
	add_slots(r->fds, slots);
	return 0;
}

int restore_child_place(struct restore_child *children, size_t index, struct fd_restore *fds,
	int *error_fd, struct err *e)
{
	cleanup_buf struct buf slots = {0}, keep = {0};
	size_t count = children[index].c->process_count;
	int end = -1, failed;

	for (size_t i = index; i < count; i++)
		if (shares_table(&children[i], index) &&
			open_files(&children[i], fds, &slots, e))
			return -1;
	buf_push(&slots, int *, &error_fd);
	for (size_t i = 0; i < buf_count(&slots, int *); i++)
		buf_push(&keep, int, *buf_at(&slots, int *, i));
	buf_push(&keep, int, &end);
	failed = fd_restore_process(fds, index, keep.data, e);
	/* Also where that failed: the error is to be told through one of them. */
	for (size_t i = 0; i < buf_count(&slots, int *); i++)
		**buf_at(&slots, int *, i) = *buf_at(&keep, int, i);
	if (failed)
		return -1;
	for (size_t i = index; i < count; i++)
		if (shares_table(&children[i], index) && open_objects(&children[i], fds, e))
			return -1;
	return 0;
}

int restore_child_enter(struct restore_child *r, const struct fd_restore *fds, struct err *e)
{
	const struct image_process *p;
	cleanup_fd int place = -1;
	const char *cwd;
	size_t count;

	p = image_note_array(
		process_image(r), IMAGE_NOTE_PROCESS, struct image_process, &count);
	cwd = image_string(process_image(r), p->cwd);
	if (p->cwd_object && !r->trial && fd_restore_directory(fds, p->cwd_object, e))
		return -1;
	if (!p->cwd_object) {
		place = fd_open_trusted(cwd, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (place < 0 || fchdir(place))
			return err_set(e, errno, "cannot enter the working directory %s", cwd);
	}
	umask(p->umask);
	return 0;
}

/* As execve(2) does. */
static int close_on_exec(struct err *e)
{
	cleanup_buf struct buf numbers = {0};
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;

	if (!dir)
		return err_set(e, errno, "cannot list /proc/self/fd");
	while ((entry = readdir(dir))) {
		int fd = atoi(entry->d_name);

		if (entry->d_name[0] != '.' && fd != dirfd(dir))
			buf_push(&numbers, int, &fd);
	}
	closedir(dir);
	for (size_t i = 0; i < buf_count(&numbers, int); i++) {
		int fd = *buf_at(&numbers, int, i), flags = fcntl(fd, F_GETFD);

		if (flags >= 0 && flags & FD_CLOEXEC)
			close(fd);
	}
	return 0;
}

int restore_child_prepare_stop(bool follows, struct err *e)
{
	if (!follows && close_on_exec(e))
		return -1;
	/* A process that has changed its user on its way here is nobody's to look at. */
	if (prctl(PR_SET_DUMPABLE, 1))
		return err_set(e, errno, "cannot become dumpable");
	return 0;
}

int restore_child_exec(struct restore_child *r, struct err *e)
{
	const struct image *img = process_image(r);
	const struct image_process *p;
	size_t count;
	const char *exe;

	p = image_note_array(img, IMAGE_NOTE_PROCESS, struct image_process, &count);
	exe = r->foreign_exe ? "/proc/self/exe" : image_string(img, p->exe);
	execve(exe, (char *[]){(char *)exe, NULL}, (char *[]){NULL});
	return err_set(e, errno, "cannot execute %s", exe);
}
