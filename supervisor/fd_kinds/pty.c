/*
 * fd_kinds/pty.c - pseudo-terminals of which both ends are in the tree.
 *
 * The terminal itself is the object; it is known by its number, which the program may have
 * asked for (ptsname, ttyname) and gets again.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "supervisor/fd_kinds/fd_kinds.h"
#include "supervisor/fd/objects_restore.h"
#include "supervisor/fd/objects_dump.h"
#include "supervisor/fd_kinds/pty.h"
#include "supervisor/fd_kinds/pty_state.h"

/* Duplicates of the tree's own descriptors; -1: it has none. */
struct fd_pty {
	int master, slave;
	struct image_pty state;
};

/* ---- saving ---- */

/* What a descriptor of /dev/tty led to when it was opened is no longer asked for by name. */
static bool is_dev_tty(const struct fd_source *s)
{
	return S_ISCHR(s->st.st_mode) && s->st.st_rdev == makedev(5, 0);
}

/* Number of the terminal that @s is a slave of; -1: it is none, -2: it was hung up. */
static int slave_index(const struct fd_source *s)
{
	uint64_t rdev;

	if (!S_ISCHR(s->st.st_mode))
		return -1;
	if (!is_dev_tty(s))
		return pty_index(s->st.st_rdev);
	if (!pty_device(s->dup, &rdev))
		return pty_index(rdev);
	return errno == EIO ? -2 : -1;
}

static bool is_stream(const struct fd_dump *d, int index)
{
	for (int i = 0; i < 3; i++)
		if (d->streams[i].usable && S_ISCHR(d->streams[i].st.st_mode) &&
			pty_index(d->streams[i].st.st_rdev) == index)
			return true;
	return false;
}

bool fd_pty_master_match(const struct fd_dump *d, const struct fd_source *s)
{
	return S_ISCHR(s->st.st_mode) && s->st.st_rdev == makedev(5, 2);
}

bool fd_pty_slave_match(const struct fd_dump *d, const struct fd_source *s)
{
	int index = slave_index(s);

	return index == -2 || (index >= 0 && !(is_dev_tty(s) && is_stream(d, index)));
}

/* What the tree has mounted at /dev/pts, if that is where terminal @index is. */
static dev_t devpts_of(const struct fd_source *s, int index)
{
	cleanup_free char *path = xasprintf("/proc/%d/root/dev/pts/%d", s->task, index);
	struct stat st;

	return !stat(path, &st) && pty_index(st.st_rdev) == index ? st.st_dev : 0;
}

static uint32_t terminal_of(struct fd_dump *d, const struct fd_source *s, int index)
{
	cleanup_free char *path = xasprintf("/dev/pts/%d", index);
	uint32_t number = fd_object_numbered(d, IMAGE_OBJECT_PTY, index);
	struct fd_object o = {
		.o = {.kind = IMAGE_OBJECT_PTY, .inode = index},
		.pid = s->pid,
		.task = s->task,
		.fd = s->fd,
	};

	if (number)
		return number;
	o.o.name = image_writer_string(d->job, path);
	o.text = fd_source_text(s);
	o.link = xstrdup(path);
	o.pty = xcalloc(1, sizeof(*o.pty));
	o.pty->master = o.pty->slave = -1;
	o.devpts = devpts_of(s, index);
	return fd_object_add(d, &o);
}

static int keep_fd(const struct fd_source *s, int *fd, struct err *e)
{
	if (*fd < 0)
		*fd = fcntl(s->dup, F_DUPFD_CLOEXEC, 3);
	return *fd < 0 ? err_set(e, errno, "cannot keep it open") : 0;
}

int fd_pty_master_dump(struct fd_dump *d, const struct fd_source *s,
	struct image_description *x, struct err *e)
{
	int index = pty_index_of_master(s->dup);

	if (index < 0)
		return err_set(e, errno, "cannot query its number");
	x->path = image_writer_string(d->job, s->link);
	x->object = terminal_of(d, s, index);
	return keep_fd(s, &fd_object_at(d, x->object)->pty->master, e);
}

int fd_pty_slave_dump(struct fd_dump *d, const struct fd_source *s, struct image_description *x,
	struct err *e)
{
	int index = slave_index(s);
	struct fd_object *o;

	if (index < 0)
		return err_set(
			e, 0, "/dev/tty of a terminal that was hung up is not supported");
	x->object = terminal_of(d, s, index);
	x->args[0] = is_dev_tty(s);
	o = fd_object_at(d, x->object);
	x->path = o->o.name;
	o->pty->state.uid = s->st.st_uid;
	o->pty->state.gid = s->st.st_gid;
	if (!is_dev_tty(s)) {
		o->pty->state.mode = s->st.st_mode & 07777;
		o->devpts = s->st.st_dev;
	}
	return keep_fd(s, &o->pty->slave, e);
}

static bool is_hung_up(int slave)
{
	uint64_t rdev;

	return slave >= 0 && pty_device(slave, &rdev) && errno == EIO;
}

static int save_pty(struct fd_object *o, struct err *e)
{
	struct fd_pty *p = o->pty;
	cleanup_buf struct buf pending = {0};

	if (p->master < 0 && !is_hung_up(p->slave))
		return err_set(e, 0,
			"%s: terminals other than the standard streams are not supported when "
			"their other end is outside of the program",
			o->text);
	/* A number that is in use again: a terminal that was hung up has none any more. */
	if (p->master >= 0 && is_hung_up(p->slave))
		return err_set(e, 0, "%s: a terminal of the same number was hung up", o->text);
	if (p->master < 0)
		p->state.flags = IMAGE_PTY_OPENED | IMAGE_PTY_HUNG_UP;
	else if (pty_save(p->master, p->slave, &p->state, &pending, e))
		return err_prefix(e, "%s", o->text);
	buf_add(&o->bytes, &p->state, sizeof(p->state));
	buf_add(&o->bytes, pending.data, pending.len);
	o->o.size = o->bytes.len;
	return 0;
}

static uint32_t object_count(const struct fd_dump *d)
{
	return buf_count(&d->objects, struct fd_object);
}

int fd_ptys_save(struct fd_dump *d, struct err *e)
{
	for (uint32_t n = 1; n <= object_count(d); n++) {
		struct fd_object *o = fd_object_at(d, n);

		if (o->pty && save_pty(o, e))
			return -1;
	}
	return 0;
}

void fd_ptys_free(struct fd_dump *d)
{
	for (uint32_t n = 1; n <= object_count(d); n++) {
		struct fd_object *o = fd_object_at(d, n);

		if (!o->pty)
			continue;
		util_close(&o->pty->master);
		util_close(&o->pty->slave);
		free(o->pty);
		o->pty = NULL;
	}
}

bool fd_dump_has_terminal(const struct fd_dump *d, int index)
{
	return fd_object_numbered(d, IMAGE_OBJECT_PTY, index);
}

/* ---- restart ---- */

static int load_state(struct fd_restore *r, uint32_t number, struct image_pty *state,
	struct buf *pending, struct err *e)
{
	const struct image_object *o = fd_object_info(r->job, number, IMAGE_OBJECT_PTY, e);
	cleanup_buf struct buf all = {0};

	if (!o)
		return -1;
	if (o->size < sizeof(*state) || o->size > 1u << 20)
		return err_set(e, 0, "the image is damaged: a terminal of impossible size");
	if (fd_object_contents(r, number, o->size, &all, e))
		return -1;
	memcpy(state, all.data, sizeof(*state));
	buf_add(pending, (char *)all.data + sizeof(*state), all.len - sizeof(*state));
	return 0;
}

int fd_pty_check(const struct fd_check *c, const struct image_description *x, struct err *e)
{
	return fd_object_info(c->job, x->object, IMAGE_OBJECT_PTY, e) ? 0 : -1;
}

/* The kernel gives out the lowest number that is free. */
static int open_master(const char *path, uint64_t index, struct err *e)
{
	cleanup_buf struct buf others = {0};
	int fd, n;

	for (;;) {
		fd = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
		n = fd < 0 ? -1 : pty_index_of_master(fd);
		if (n < 0)
			err_set(e, errno, "cannot create a pseudo-terminal (%s)", path);
		else if ((uint64_t)n > index)
			err_with(e, ERR_ID_TAKEN, "/dev/pts/%lu is in use",
				(unsigned long)index);
		if (n < 0 || (uint64_t)n >= index)
			break;
		buf_push(&others, int, &fd);
	}
	for (size_t i = 0; i < buf_count(&others, int); i++)
		close(*buf_at(&others, int, i));
	if (fd >= 0 && (uint64_t)n != index)
		util_close(&fd);
	return (uint64_t)n == index ? fd : -1;
}

/* As the program opened it, if its master is there to tell. */
static const char *master_path(const struct fd_restore *r, uint32_t object)
{
	for (size_t i = 0; i < r->description_count; i++)
		if (r->descriptions[i].kind == IMAGE_FD_PTY_MASTER &&
			r->descriptions[i].object == object)
			return image_string(r->job, r->descriptions[i].path);
	return "/dev/ptmx";
}

/* Both ends; the slave's is needed by what comes later, and closed in the end. */
static struct fd_made *make_terminal(struct fd_restore *r, uint32_t number, struct err *e)
{
	cleanup_buf struct buf pending = {0};
	struct fd_made *made;
	struct image_pty state;
	int fd;

	if (load_state(r, number, &state, &pending, e))
		return NULL;
	made = &r->made[number - 1];
	if (made->fd >= 0)
		return made;
	fd = open_master(master_path(r, number), r->objects[number - 1].inode, e);
	if (fd < 0)
		return NULL;
	made->fd = fd_lift(r, fd, e);
	if (made->fd < 0)
		return NULL;
	if (ioctl(made->fd, TIOCSPTLCK, &(int){0})) {
		err_set(e, errno, "cannot unlock a pseudo-terminal");
		return NULL;
	}
	if (!(state.flags & IMAGE_PTY_OPENED))
		return made;
	fd = pty_open_slave(made->fd, O_RDWR);
	if (fd < 0) {
		err_set(e, errno, "cannot open the other end of a pseudo-terminal");
		return NULL;
	}
	made->writer = fd_lift(r, fd, e);
	return made->writer < 0 ? NULL : made;
}

int fd_pty_master_restore(
	struct fd_restore *r, const struct image_description *x, struct err *e)
{
	struct fd_made *made = make_terminal(r, x->object, e);

	return made ? made->fd = fd_lift_into(r, x - r->descriptions, made->fd, e) : -1;
}

unsigned fd_pty_master_takes(const struct image_description *x, const struct fd_object *o)
{
	return 1;
}

struct tty_opener {
	int slave, flags;
	int fd;
};

/* Shares our descriptors, and our memory while we wait; ends with its session. The restart does
 * not count it among the processes (CLONE_UNTRACED). */
static int open_dev_tty(void *arg)
{
	struct tty_opener *o = arg;

	if (setsid() >= 0 && !ioctl(o->slave, TIOCSCTTY, 0))
		o->fd = open("/dev/tty", o->flags);
	return 0;
}

/* Only a process that a terminal controls can open it as /dev/tty. */
static int restore_dev_tty(
	struct fd_restore *r, int slave, const struct image_description *x, struct err *e)
{
	struct tty_opener o = {
		.slave = slave,
		.flags = (x->flags & (O_ACCMODE | O_NONBLOCK)) | O_CLOEXEC,
		.fd = -1,
	};
	const size_t size = 65536;
	char *stack =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pid_t pid = -1;

	if (stack != MAP_FAILED) {
		pid = clone(open_dev_tty, stack + size,
			CLONE_VM | CLONE_FILES | CLONE_VFORK | CLONE_UNTRACED | SIGCHLD, &o);
		while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
		munmap(stack, size);
	}
	if (pid < 0 || o.fd < 0)
		return err_set(e, errno, "cannot open /dev/tty");
	return fd_lift_into(r, x - r->descriptions, o.fd, e);
}

int fd_pty_slave_restore(struct fd_restore *r, const struct image_description *x, struct err *e)
{
	struct fd_made *made = make_terminal(r, x->object, e);
	int fd;

	if (!made)
		return -1;
	if (made->writer < 0)
		return err_set(e, 0, "the image is damaged: a terminal that was never opened");
	if (x->args[0])
		return restore_dev_tty(r, made->writer, x, e);
	if (!made->taken[1] && (x->flags & O_ACCMODE) == O_RDWR) {
		made->taken[1] = true;
		return made->writer = fd_lift_into(r, x - r->descriptions, made->writer, e);
	}
	fd = pty_open_slave(made->fd, x->flags & (O_ACCMODE | O_NONBLOCK));
	return fd < 0 ? err_set(e, errno, "cannot open %s", image_string(r->job, x->path))
		      : fd_lift_into(r, x - r->descriptions, fd, e);
}

unsigned fd_pty_slave_takes(const struct image_description *x, const struct fd_object *o)
{
	return (x->flags & O_ACCMODE) == O_RDWR && !x->args[0] ? 2 : 0;
}

/* The file in /dev/pts. Another's can stay ours, as for other files. */
static int set_owner(const struct image_pty *state, int slave, struct err *e)
{
	struct stat st;

	if (slave < 0 || !state->mode)
		return 0;
	if (fstat(slave, &st))
		return err_set(e, errno, "cannot examine a terminal");
	if (st.st_uid != state->uid || st.st_gid != state->gid)
		(void)!fchown(slave, state->uid, state->gid);
	if ((st.st_mode & 07777) != state->mode && fchmod(slave, state->mode))
		return err_set(e, errno, "cannot set the mode of a terminal");
	return 0;
}

static int finish_pty(struct fd_restore *r, uint32_t number, struct err *e)
{
	struct fd_made *made = &r->made[number - 1];
	cleanup_buf struct buf pending = {0};
	struct image_pty state;

	if (load_state(r, number, &state, &pending, e))
		return -1;
	if (state.flags & IMAGE_PTY_HUNG_UP) {
		close(made->fd);
		made->fd = -1;
		return 0;
	}
	if (pty_load(made->fd, made->writer, &state, &pending, e) ||
		set_owner(&state, made->writer, e))
		return err_prefix(
			e, "/dev/pts/%lu", (unsigned long)r->objects[number - 1].inode);
	return 0;
}

int fd_ptys_finish(struct fd_restore *r, struct err *e)
{
	for (uint32_t n = 1; n <= r->object_count; n++)
		if (r->made[n - 1].fd >= 0 && r->objects[n - 1].kind == IMAGE_OBJECT_PTY &&
			finish_pty(r, n, e))
			return -1;
	return 0;
}

int fd_restore_terminal(const struct fd_restore *r, uint32_t index)
{
	for (size_t i = 0; i < r->object_count; i++)
		if (r->objects[i].kind == IMAGE_OBJECT_PTY && r->objects[i].inode == index)
			return r->made[i].writer;
	return -1;
}

/* Number + 1 of a terminal of @c; with @in_use, of a terminal whose number is in use here. */
static uint64_t find_terminal(const struct checkpoint *c, bool in_use)
{
	const struct image_object *o;
	size_t count;

	o = image_note_array(c->job, IMAGE_NOTE_OBJECTS, struct image_object, &count);
	for (size_t i = 0; i < count; i++) {
		cleanup_free char *path = xasprintf("/dev/pts/%lu", (unsigned long)o[i].inode);

		if (o[i].kind == IMAGE_OBJECT_PTY && (!in_use || !access(path, F_OK)))
			return o[i].inode + 1;
	}
	return 0;
}

uint64_t fd_terminal_in_use(const struct checkpoint *c)
{
	return find_terminal(c, true);
}

bool fd_has_terminals(const struct checkpoint *c)
{
	return find_terminal(c, false);
}

/* ---- show ---- */

void fd_pty_master_show(
	const struct image *job, const struct image_description *x, struct buf *out)
{
	const struct image_object *o = fd_object_info(job, x->object, IMAGE_OBJECT_PTY, NULL);

	buf_printf(out, "master of terminal %s", o ? image_string(job, o->name) : "?");
}

void fd_pty_slave_show(
	const struct image *job, const struct image_description *x, struct buf *out)
{
	buf_printf(out, "terminal %s%s", image_string(job, x->path),
		x->args[0] ? " (opened as /dev/tty)" : "");
}
