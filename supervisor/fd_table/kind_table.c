/*
 * fd_table/kind_table.c - each kind of open file with its functions. The first row that
 * matches a descriptor at a checkpoint says how it is saved.
 */
#include "supervisor/fd_table/kind_table.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "supervisor/socket/socket_families.h"
#include "supervisor/uring/uring.h"

#define ROW(f)                                                                                 \
	.match = f##_match, .dump = f##_dump, .check = f##_check, .restore = f##_restore,      \
	.show = f##_show
#define UNCHECKED_ROW(f)                                                                       \
	.match = f##_match, .dump = f##_dump, .restore = f##_restore, .show = f##_show
#define PROVOKED(f)  .provoke = f##_provoke, .calm = f##_calm
#define FOR_TASKS(f) .needs_threads = f##_needs_threads, .open_remotely = f##_open_remotely

static const struct fd_kind kinds[] = {
	{IMAGE_FD_NAMESPACE, "namespace", 0, ROW(fd_namespace)},
	{IMAGE_FD_PATH, "path", 0, ROW(fd_path)},
	{IMAGE_FD_INHERITED, "inherited", FD_FIRES | FD_FROM_LAUNCHER, ROW(fd_inherited)},
	{IMAGE_FD_MQUEUE, "message queue", FD_IN_PLACE, ROW(fd_mqueue)},
	{IMAGE_FD_INOTIFY, "inotify", FD_FIRES, ROW(fd_inotify), PROVOKED(fd_inotify),
		.stage = FD_LATE},
	{IMAGE_FD_FANOTIFY, "fanotify", 0, ROW(fd_fanotify), .stage = FD_LAST},
	{IMAGE_FD_PIDFD, "pidfd", FD_OF_TASK, ROW(fd_pidfd), FOR_TASKS(fd_pidfd)},
	{IMAGE_FD_ENDED_FILE, "file of a process that has ended", 0, ROW(fd_ended_file)},
	{IMAGE_FD_PROCESS_FILE, "file of a process", FD_OF_TASK, ROW(fd_process_file),
		FOR_TASKS(fd_process_file)},
	{IMAGE_FD_REGULAR, "file", FD_CAN_LOCK, ROW(fd_regular)},
	{IMAGE_FD_MEMFD, "memfd", FD_CAN_LOCK | FD_IN_PLACE, ROW(fd_memfd),
		.takes = fd_memfd_takes},
	{IMAGE_FD_UNLINKED, "unlinked file", FD_CAN_LOCK, ROW(fd_unlinked)},
	{IMAGE_FD_DIRECTORY, "directory", FD_CAN_LOCK, ROW(fd_directory)},
	{IMAGE_FD_REMOVED, "removed directory", FD_CAN_LOCK, ROW(fd_removed)},
	{IMAGE_FD_PTY_MASTER, "terminal master", FD_IN_PLACE, UNCHECKED_ROW(fd_pty_master),
		.check = fd_pty_check, .takes = fd_pty_master_takes},
	{IMAGE_FD_PTY_SLAVE, "terminal", FD_IN_PLACE, UNCHECKED_ROW(fd_pty_slave),
		.check = fd_pty_check, .takes = fd_pty_slave_takes},
	{IMAGE_FD_DEVICE, "device", 0, ROW(fd_device)},
	{IMAGE_FD_PIPE, "pipe", FD_IN_PLACE | FD_FIRES, ROW(fd_pipe), PROVOKED(fd_pipe),
		.takes = fd_pipe_takes, .owned_object = IMAGE_OBJECT_PIPE},
	{IMAGE_FD_FIFO, "FIFO", FD_FIRES, ROW(fd_fifo), PROVOKED(fd_pipe)},
	{IMAGE_FD_UNLINKED_FIFO, "unlinked FIFO", FD_FIRES, ROW(fd_unlinked_fifo),
		PROVOKED(fd_pipe), .owned_object = IMAGE_OBJECT_PIPE},
	{IMAGE_FD_EVENTFD, "eventfd", FD_FIRES, UNCHECKED_ROW(fd_eventfd)},
	{IMAGE_FD_TIMERFD, "timerfd", FD_FIRES, UNCHECKED_ROW(fd_timerfd),
		PROVOKED(fd_timerfd)},
	{IMAGE_FD_SIGNALFD, "signalfd", FD_FIRES | FD_OWN_EVENTS, UNCHECKED_ROW(fd_signalfd)},
	{IMAGE_FD_EPOLL, "epoll", FD_FIRES, ROW(fd_epoll), PROVOKED(fd_epoll),
		.needs = fd_epoll_needs, .stage = FD_FIRST},
	{IMAGE_FD_SOCKET, "socket", FD_IN_PLACE | FD_FIRES, ROW(fd_socket),
		.owned_object = IMAGE_OBJECT_SOCKET},
	{IMAGE_FD_URING, "io_uring", FD_IN_PLACE, ROW(fd_uring)},
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
	if (kind->traits & FD_CAN_LOCK && x->args[0])
		buf_printf(out, ", locked");
}
