/* What is registered with an io_uring, and the numbers that threads have for it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "supervisor/uring/uring_process_restore.h"

static int ring_register(struct return_of_ring *r, unsigned opcode, const void *data,
	size_t size, unsigned count, const char *what)
{
	int64_t result;

	if (tracee_write(r->np->process.mem_fd, r->scratch, data, size, r->np->e) ||
		REMOTE_CALL(&r->remote, &result, r->np->e, SYS_io_uring_register, r->number,
			opcode, r->scratch, count))
		return -1;
	return result < 0
		       ? err_set(r->np->e, -result, "cannot register %s with an io_uring", what)
		       : 0;
}

/* The table, whose slots are empty. */
static int make_table(struct return_of_ring *r, unsigned opcode, uint32_t count)
{
	struct io_uring_rsrc_register table = {
		.nr = count, .flags = IORING_RSRC_REGISTER_SPARSE};

	return ring_register(r, opcode, &table, sizeof(table), sizeof(table), "slots");
}

/* One slot. */
static int fill_slot(struct return_of_ring *r, unsigned opcode, uint32_t slot, const void *what,
	size_t size, const char *name)
{
	struct {
		struct io_uring_rsrc_update2 update;
		uint64_t data[2];
	} u = {.update = {.offset = slot, .data = r->scratch + sizeof(u.update), .nr = 1}};

	memcpy(u.data, what, size);
	return ring_register(r, opcode, &u, sizeof(u), sizeof(u.update), name);
}

static int register_line(struct return_of_ring *r, const char *line)
{
	uint64_t iov[2];
	uint32_t slot;
	int fd;

	if (sscanf(line, "files %u", &slot) == 1)
		return make_table(r, IORING_REGISTER_FILES2, slot);
	if (sscanf(line, "file %u %d", &slot, &fd) == 2)
		return fill_slot(
			r, IORING_REGISTER_FILES_UPDATE2, slot, &fd, sizeof(fd), "a file");
	if (sscanf(line, "buffers %u", &slot) == 1)
		return make_table(r, IORING_REGISTER_BUFFERS2, slot);
	if (sscanf(line, "buffer %u %" SCNx64 " %" SCNx64, &slot, &iov[0], &iov[1]) == 3)
		return fill_slot(
			r, IORING_REGISTER_BUFFERS_UPDATE, slot, iov, sizeof(iov), "memory");
	if (sscanf(line, "eventfd %d", &fd) == 1)
		return ring_register(
			r, IORING_REGISTER_EVENTFD, &fd, sizeof(fd), 1, "an eventfd");
	return 0;
}

int restore_ring_register(struct return_of_ring *r)
{
	return restore_each_line(r, register_line);
}

static int register_ring(struct return_of_ring *r, struct thread *t, unsigned slot)
{
	struct io_uring_rsrc_update u = {.offset = slot, .data = r->number};
	struct err *e = r->np->e;
	int64_t result;
	uint64_t at;
	int failed;

	if (remote_begin(&r->remote, &r->np->process, t, e))
		return -1;
	at = remote_scratch(&r->remote, 4096, e);
	failed = !at || tracee_write(r->np->process.mem_fd, at, &u, sizeof(u), e) ||
		 REMOTE_CALL(&r->remote, &result, e, SYS_io_uring_register, r->number,
			 IORING_REGISTER_RING_FDS, at, 1);
	if (remote_end(&r->remote, failed ? NULL : e) || failed)
		return -1;
	return result == 1 ? 0
			   : err_set(e, result < 0 ? -result : 0,
				     "cannot register an io_uring with a thread");
}

static int register_ring_line(struct return_of_ring *r, const char *line)
{
	struct thread *t;
	unsigned slot;
	int tid;

	if (sscanf(line, "ring %d %u", &tid, &slot) != 2)
		return 0;
	t = restore_ring_thread(r, tid);
	return t ? register_ring(r, t, slot) : 0;
}

int restore_ring_register_thread(struct return_of_ring *r)
{
	return restore_each_line(r, register_ring_line);
}
