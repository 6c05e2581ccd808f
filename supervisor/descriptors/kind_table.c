#include "supervisor/descriptors/descriptors.h"
#include "supervisor/fd/kinds.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "supervisor/socket/socket_families.h"

#define ROW(f) f##_match, f##_dump, f##_check, f##_restore, f##_show, NULL

/* The first row that matches counts. */
static const struct fd_kind kinds[] = {
	{IMAGE_FD_NAMESPACE, "namespace", false, ROW(fd_namespace)},
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
