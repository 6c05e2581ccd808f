#include "supervisor/fd/kinds.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "supervisor/socket/socket_families.h"

#define ROW(f) f##_match, f##_dump, f##_check, f##_restore, f##_show, NULL

/* The first row that matches counts. */
static const struct fd_kind kinds[] = {
	{IMAGE_FD_PATH, "path", false, ROW(fd_path)},
	{IMAGE_FD_INHERITED, "inherited", false, ROW(fd_inherited)},
	{IMAGE_FD_MQUEUE, "message queue", false, ROW(fd_mqueue)},
	{IMAGE_FD_INOTIFY, "inotify", false, ROW(fd_inotify)},
	{IMAGE_FD_FANOTIFY, "fanotify", false, ROW(fd_fanotify)},
	{IMAGE_FD_PIDFD, "pidfd", false, fd_pidfd_match, fd_pidfd_dump, fd_pidfd_check,
		fd_pidfd_restore, fd_pidfd_show, fd_pidfd_finish},
	{IMAGE_FD_ENDED_FILE, "file of a process that has ended", false, ROW(fd_ended_file)},
	{IMAGE_FD_PROCESS_FILE, "file of a process", false, fd_process_file_match,
		fd_process_file_dump, fd_process_file_check, fd_process_file_restore,
		fd_process_file_show, fd_process_file_finish},
	{IMAGE_FD_REGULAR, "file", true, ROW(fd_regular)},
	{IMAGE_FD_MEMFD, "memfd", true, ROW(fd_memfd)},
	{IMAGE_FD_UNLINKED, "unlinked file", true, ROW(fd_unlinked)},
	{IMAGE_FD_DIRECTORY, "directory", true, ROW(fd_directory)},
	{IMAGE_FD_REMOVED, "removed directory", true, ROW(fd_removed)},
	{IMAGE_FD_PTY_MASTER, "terminal master", false, fd_pty_master_match, fd_pty_master_dump,
		fd_pty_check, fd_pty_master_restore, fd_pty_master_show, NULL},
	{IMAGE_FD_PTY_SLAVE, "terminal", false, fd_pty_slave_match, fd_pty_slave_dump,
		fd_pty_check, fd_pty_slave_restore, fd_pty_slave_show, NULL},
	{IMAGE_FD_DEVICE, "device", false, ROW(fd_device)},
	{IMAGE_FD_PIPE, "pipe", false, ROW(fd_pipe)},
	{IMAGE_FD_FIFO, "FIFO", false, ROW(fd_fifo)},
	{IMAGE_FD_UNLINKED_FIFO, "unlinked FIFO", false, ROW(fd_unlinked_fifo)},
	{IMAGE_FD_EVENTFD, "eventfd", false, fd_eventfd_match, fd_eventfd_dump, NULL,
		fd_eventfd_restore, fd_eventfd_show, NULL},
	{IMAGE_FD_TIMERFD, "timerfd", false, fd_timerfd_match, fd_timerfd_dump, NULL,
		fd_timerfd_restore, fd_timerfd_show, NULL},
	{IMAGE_FD_SIGNALFD, "signalfd", false, fd_signalfd_match, fd_signalfd_dump, NULL,
		fd_signalfd_restore, fd_signalfd_show, NULL},
	{IMAGE_FD_EPOLL, "epoll", false, ROW(fd_epoll)},
	{IMAGE_FD_SOCKET, "socket", false, ROW(fd_socket)},
	{IMAGE_FD_URING, "io_uring", false, ROW(fd_uring)},
};

const struct fd_kind *fd_kind_match(const struct fd_dump *d, const struct fd_source *s)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (kinds[i].match(d, s))
			return &kinds[i];
	return NULL;
}

const struct fd_kind *fd_kind_find(uint32_t kind)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (kinds[i].kind == kind)
			return &kinds[i];
	return NULL;
}

/* What the link of a descriptor that has no row begins with, and what to call it. */
static const struct {
	const char *link, *what;
} refused[] = {
	{"anon_inode:[userfaultfd]", "userfaultfd descriptors are"},
	{"anon_inode:[perf_event]", "perf events are"},
	{"anon_inode:bpf", "BPF objects are"},
	{"anon_inode:[bpf", "BPF objects are"},
	{"anon_inode:seccomp", "seccomp listeners are"},
	{"anon_inode:[landlock", "Landlock rule sets are"},
	{"anon_inode:kvm", "KVM virtual machines are"},
	{"anon_inode:[fscontext]", "file system contexts are"},
	{"anon_inode:[secretmem]", "secret memory (memfd_secret) is"},
	{"/secretmem", "secret memory (memfd_secret) is"},
	{"anon_inode:sync_file", "driver descriptors are"},
	{"anon_inode:", "descriptors of this kind are"},
	{"/dmabuf:", "driver descriptors are"},
	{"/dev/nvidia", "GPUs that were opened past trecr's library are"},
	{"/dev/dri/", "driver descriptors (GPU) are"},
	{"/dev/infiniband/", "driver descriptors (InfiniBand) are"},
	{"/dev/kfd", "driver descriptors (GPU) are"},
	{"/dev/fuse", "FUSE connections are"},
	{"/dev/tty", "terminals other than the standard streams are"},
	{"/dev/console", "terminals other than the standard streams are"},
	{"mnt:[", "namespace descriptors are"},
	{"net:[", "namespace descriptors are"},
	{"pid:[", "namespace descriptors are"},
	{"user:[", "namespace descriptors are"},
	{"uts:[", "namespace descriptors are"},
	{"ipc:[", "namespace descriptors are"},
	{"time:[", "namespace descriptors are"},
	{"cgroup:[", "namespace descriptors are"},
};

int fd_unsupported(const struct fd_source *s, struct err *e)
{
	if (S_ISBLK(s->st.st_mode))
		return err_set(e, 0, "block devices are not supported");
	if (S_ISDIR(s->st.st_mode))
		return err_set(e, 0,
			"the directory has another name by now, or a file system is mounted "
			"over it");
	if (S_ISFIFO(s->st.st_mode))
		return err_set(e, 0,
			"the FIFO has a name that cannot be found, by which others may open "
			"it");
	if (S_ISSOCK(s->st.st_mode))
		return socket_refuse(s->dup, e);
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
		if (!strncmp(s->link, refused[i].link, strlen(refused[i].link)))
			return err_set(e, 0, "%s not supported yet", refused[i].what);
	if (S_ISCHR(s->st.st_mode))
		return err_set(e, 0, "the device %u:%u is not supported", major(s->st.st_rdev),
			minor(s->st.st_rdev));
	return err_set(e, 0, "descriptors of this kind are not supported yet");
}

static void show_flags(const struct image_description *x, struct buf *out)
{
	static const struct {
		uint32_t flag;
		const char *text;
	} flags[] = {
		{O_APPEND, "append"},
		{O_NONBLOCK, "non-blocking"},
		{O_DIRECT, "direct"},
		{O_DSYNC, "synchronous"},
		{O_ASYNC, "asynchronous"},
		{O_NOATIME, "no atime"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
		if (x->flags & flags[i].flag)
			buf_printf(out, ", %s", flags[i].text);
	if (x->owner_kind == IMAGE_OWNER_OUR_GROUP)
		buf_printf(out, ", signals the process group of trecr");
	else if (x->owner)
		buf_printf(out, ", signals %s %d",
			x->owner_kind == IMAGE_OWNER_THREAD ? "thread"
			: x->owner < 0                      ? "process group"
							    : "process",
			x->owner < 0 ? -x->owner : x->owner);
}

void fd_show(const struct image *job, const struct image_description *x, struct buf *out)
{
	const struct fd_kind *kind = fd_kind_find(x->kind);

	if (!kind) {
		buf_printf(out, "unknown kind %u", x->kind);
		return;
	}
	kind->show(job, x, out);
	show_flags(x, out);
	if (kind->can_lock && x->args[0])
		buf_printf(out, ", locked");
}
