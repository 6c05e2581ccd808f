/*
 * Small files in directories for temporary files, which a program has mapped: what other programs
 * do to them between two steps of a checkpoint or a restart.
 */
#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "ckpt/store.h"
#include "lib/notices.h"
#include "lib/procfs.h"
#include "lib/util.h"
#include "supervisor/fd/objects_dump.h"
#include "supervisor/fd_kinds/saved_files.h"
#include "supervisor/fd_kinds/saved_files_restore.h"
#include "supervisor/fd_table/descriptors.h"
#include "t/unit/scratch.h"
#include "t/unit/tap.h"

static struct err e;
static char file[128];                    /* the mapped one, */
static char outer[80], inner[100];        /* and its directories */
static void (*at_open)(const char *name); /* when the file is made that is to take its place */

/* In place of the C library's. */
int openat(int in, const char *name, int flags, ...)
{
	va_list ap;
	mode_t mode;

	va_start(ap, flags);
	mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	if (flags & O_CREAT && strstr(name, "file.trecr-") && at_open)
		at_open(name);
	return syscall(SYS_openat, in, name, flags, mode);
}

static void (*at_mkdir)(void); /* when the inner directory is made again */

int mkdirat(int in, const char *name, mode_t mode)
{
	if (at_mkdir && !strcmp(name, "inner"))
		at_mkdir();
	return syscall(SYS_mkdirat, in, name, mode);
}

static void write_text(const char *path, const char *text)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0640);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		diag("cannot write %s: %s", path, strerror(errno));
	close(fd);
}

static bool has_text(const char *path, const char *text)
{
	char found[100] = "";
	int fd = open(path, O_RDONLY | O_NONBLOCK);
	bool same = fd >= 0 && read(fd, found, sizeof(found) - 1) >= 0 && !strcmp(found, text);

	close(fd);
	return same;
}

static void make_file(void)
{
	if (mkdir(outer, 0700) || chmod(outer, 0751) || mkdir(inner, 0700) ||
		chmod(inner, 0731))
		diag("cannot make %s: %s", inner, strerror(errno));
	write_text(file, "contents");
}

static void remove_all(void)
{
	(void)!unlink(file);
	(void)!rmdir(inner);
	(void)!rmdir(outer);
}

static void ignore(void *arg, const char *line)
{
	diag("%s", line);
}

static void say(const char *line)
{
	diag("%s", line);
}

static struct image_writer *open_job(void)
{
	static const uint8_t id[16] = "saved files";
	int dir = open("ckpt-000001", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct image_writer *w =
		image_writer_open(dir, IMAGE_JOB_FILE, IMAGE_FILE_JOB, id, "job", NULL);
	struct image_chain link = {0};

	close(dir);
	memcpy(link.checkpoint_id, id, sizeof(id));
	link.name = image_writer_string(w, "ckpt-000001");
	image_writer_note(w, IMAGE_NOTE_CHAIN, &link, sizeof(link));
	return w;
}

/* Save what @v maps; between its being found and its being read, @meanwhile happens. */
static struct image *save(const struct vma *v, void (*meanwhile)(void))
{
	struct image_writer *job;
	struct image *img;
	struct fd_dump *d;
	int dir, r;

	(void)!system("rm -rf ckpt-000001");
	(void)!mkdir("ckpt-000001", 0700);
	job = open_job();
	d = fd_dump_new(job, FD_TCP_REFUSE);
	fd_saved_dump_mapped(d, v);
	if (meanwhile)
		meanwhile();
	e = (struct err)ERR_INIT;
	alarm(60);
	r = fd_dump_finish(d, 0, &e);
	alarm(0);
	notices_take(ignore, NULL);
	fd_dump_free(d);
	if (r || image_writer_close(job, false, &e)) {
		diag("%s", e.msg);
		return NULL;
	}
	dir = open("ckpt-000001", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	img = image_open(dir, IMAGE_JOB_FILE, "job", IMAGE_FILE_JOB, &e);
	close(dir);
	return img;
}

static bool put_back(const struct image *job)
{
	static const struct fd_restore_options none;

	e = (struct err)ERR_INIT;
	if (!fd_saved_put_back(job, &none, say, &e))
		return true;
	diag("%s", e.msg);
	return false;
}

static struct vma map_file(void)
{
	int fd = open(file, O_RDWR);
	void *p = mmap(NULL, 8, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	struct vma_list list;
	struct vma found = {0};

	close(fd);
	if (procfs_vmas(getpid(), &list, &e))
		abort();
	for (size_t i = 0; i < list.count; i++)
		if (list.v[i].start == (uintptr_t)p) {
			found = list.v[i];
			found.name = xstrdup(found.name);
		}
	vma_list_free(&list);
	return found;
}

static void unmap_file(struct vma *v)
{
	munmap((void *)v->start, 8);
	free(v->name);
}

/* ---- a checkpoint ---- */

static void replace_by_fifo(void)
{
	if (unlink(file) || mkfifo(file, 0600))
		diag("cannot make a FIFO: %s", strerror(errno));
}

static void replace_by_link(void)
{
	if (unlink(file) || symlink("/etc/passwd", file))
		diag("cannot make a link: %s", strerror(errno));
}

static void replace_by_other(void)
{
	write_text("other", "another's");
	if (rename("other", file))
		diag("cannot rename: %s", strerror(errno));
}

static void test_gone(const char *how, void (*meanwhile)(void))
{
	struct image *img;
	struct vma v;

	make_file();
	v = map_file();
	img = save(&v, meanwhile);
	ok(img && !fd_saved_in(img, file) && !fd_saved_needed(img),
		"a file that is %s before it is read is no part of the checkpoint", how);
	remove_all();
	ok(img && !fd_saved_needed(img) && put_back(img) && access(file, F_OK), "nor put back");
	if (img)
		image_close(img);
	unmap_file(&v);
}

static void test_another_device(void)
{
	struct image *img;
	struct vma v;

	make_file();
	v = map_file();
	v.dev++;
	img = save(&v, NULL);
	remove_all();
	ok(img && !fd_saved_in(img, file),
		"a file of the same number on another device is not taken for the mapped one");
	if (img)
		image_close(img);
	unmap_file(&v);
}

static void close_to_all(void)
{
	if (chmod(file, 0))
		diag("cannot close %s: %s", file, strerror(errno));
}

static void cut(void)
{
	if (truncate(file, 4))
		diag("cannot cut %s: %s", file, strerror(errno));
}

/* Nobody has asked for it to be saved, so the checkpoint does not depend on it. */
static void test_unreadable(void)
{
	struct image *img;
	struct vma v;

	make_file();
	v = map_file();
	img = save(&v, close_to_all);
	remove_all();
	ok(img && fd_saved_in(img, file) == !geteuid(),
		"a file that is closed to its owner before it is read does no harm");
	if (img)
		image_close(img);
	unmap_file(&v);
}

static void test_cut(void)
{
	struct image *img;
	struct vma v;

	make_file();
	v = map_file();
	img = save(&v, cut);
	remove_all();
	ok(img && put_back(img) && has_text(file, "cont"),
		"a file that is cut before it is read is saved as it is then");
	remove_all();
	if (img)
		image_close(img);
	unmap_file(&v);
}

/* ---- a restart ---- */

static void make_theirs(const char *name)
{
	write_text(file, "theirs");
}

static bool is_like(const char *path, mode_t mode)
{
	struct stat st;

	return !lstat(path, &st) && (st.st_mode & 07777) == mode;
}

static int count_in(const char *directory)
{
	cleanup_free char *command = xasprintf("ls -A %s | wc -l", directory);
	FILE *f = popen(command, "r");
	int n = -1;

	if (!f || fscanf(f, "%d", &n) != 1)
		n = -1;
	if (f)
		pclose(f);
	return n;
}

static void test_put_back(void)
{
	char moved[100];
	struct image *img;
	struct vma v;

	snprintf(moved, sizeof(moved), "%s/moved", scratch_path);
	make_file();
	v = map_file();
	img = save(&v, NULL);
	if (!ok(img != NULL, "a small temporary file is saved"))
		return;
	ok(img->super.incompat & IMAGE_INCOMPAT_NAMED,
		"which a trecr that would put it back in any case is told not to read");
	ok(!fd_saved_needed(img), "while it is there it need not be put back");
	remove_all();
	ok(fd_saved_needed(img) && fd_saved_in(img, file), "when it is missing it has to be");
	ok(put_back(img) && has_text(file, "contents"),
		"it is, with two directories that are missing, too");
	ok(is_like(file, 0640) && is_like(inner, 0731) && is_like(outer, 0751),
		"all have the modes that they had");
	(void)!unlink(file);
	at_open = make_theirs;
	ok(put_back(img) && has_text(file, "theirs") && count_in(inner) == 1,
		"one that another program makes in that moment stays, and nothing is left "
		"beside it");
	at_open = NULL;
	(void)!unlink(file);
	ok(!rename(outer, moved) && !symlink(moved, outer) && !put_back(img) &&
			strstr(e.msg, "a symbolic link leads there") &&
			!count_in("moved/inner"),
		"nothing is put where a symbolic link leads");
	(void)!unlink(outer);
	(void)!rename(moved, outer);
	remove_all();
	image_close(img);
	unmap_file(&v);
}

static void link_inner(void)
{
	if (mkdir("elsewhere", 0700) || symlink("../elsewhere", inner))
		diag("cannot make a link: %s", strerror(errno));
}

static void test_faster_link(void)
{
	struct image *img;
	struct vma v;

	make_file();
	v = map_file();
	img = save(&v, NULL);
	remove_all();
	at_mkdir = link_inner;
	ok(img && !put_back(img) && !count_in("elsewhere"),
		"nor where one leads that is made when the directory is to be made");
	at_mkdir = NULL;
	(void)!unlink(inner);
	remove_all();
	if (img)
		image_close(img);
	unmap_file(&v);
}

static void test_closed_directory(void)
{
	struct image *img;
	struct vma v;

	make_file();
	(void)!chmod(outer, 0555);
	v = map_file();
	img = save(&v, NULL);
	(void)!chmod(outer, 0700);
	remove_all();
	ok(img && put_back(img) && has_text(file, "contents") && is_like(outer, 0555) &&
			is_like(inner, 0731),
		"directories are made in one that nothing may be made in");
	(void)!chmod(outer, 0700);
	remove_all();
	if (img)
		image_close(img);
	unmap_file(&v);
}

int main(void)
{
	scratch_make();
	if (chdir(scratch_path))
		abort();
	snprintf(outer, sizeof(outer), "%s/outer", scratch_path);
	snprintf(inner, sizeof(inner), "%s/inner", outer);
	snprintf(file, sizeof(file), "%s/file", inner);
	umask(022);
	test_gone("removed", remove_all);
	test_gone("made a FIFO", replace_by_fifo);
	test_gone("made a symbolic link", replace_by_link);
	test_gone("replaced", replace_by_other);
	test_another_device();
	test_unreadable();
	test_cut();
	test_put_back();
	test_faster_link();
	test_closed_directory();
	return done_testing();
}
