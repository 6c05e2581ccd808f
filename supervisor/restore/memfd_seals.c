/*
 * memfd_seals.c - a descriptor of each memfd that has F_SEAL_FUTURE_WRITE, and the seal, which is
 * added when all processes have mapped their memory.
 */
#include "supervisor/restore/memfd_seals.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ckpt/store.h"
#include "supervisor/fd/objects_restore.h"

struct late_seal {
	uint32_t object;
	int fd;
	const char *name;
	int seals;
};

static bool is_taken(const struct buf *seals, uint32_t object)
{
	for (size_t i = 0; i < buf_count(seals, struct late_seal); i++)
		if (buf_at(seals, struct late_seal, i)->object == object)
			return true;
	return false;
}

static int add_seals(
	struct buf *seals, const struct new_process *np, uint32_t object, struct err *e)
{
	const struct image_object *o =
		fd_object_info(np->c->job, object, IMAGE_OBJECT_MEMFD, e);
	cleanup_fd int pidfd = pidfd_open(np->process.pid, 0);
	struct late_seal seal = {.object = object, .fd = -1};

	if (!o)
		return -1;
	seal.name = image_string(np->c->job, o->name);
	seal.seals = o->args[0];
	if (pidfd >= 0)
		seal.fd = syscall(
			SYS_pidfd_getfd, pidfd, restart_fd_object(np->fds, object - 1), 0);
	if (seal.fd < 0)
		return err_set(e, errno, "cannot get at memfd %s to seal it", seal.name);
	buf_add(seals, &seal, sizeof(seal));
	return 0;
}

int late_seals_take(
	struct buf *seals, const struct new_process *processes, size_t count, struct err *e)
{
	for (size_t i = 0; i < count; i++) {
		const struct new_process *np = &processes[i];

		for (uint32_t n = 1; n <= np->fds->objects && !np->memory && !np->trial; n++)
			if (!is_taken(seals, n) &&
				fd_seals_after_mapping(np->c->job, np->img, n) &&
				add_seals(seals, np, n, e))
				return -1;
	}
	return 0;
}

int late_seals_set(const struct buf *seals, struct err *e)
{
	for (size_t i = 0; i < buf_count(seals, struct late_seal); i++) {
		const struct late_seal *seal = buf_at(seals, struct late_seal, i);

		if (fcntl(seal->fd, F_ADD_SEALS, seal->seals))
			return err_set(e, errno, "cannot seal memfd %s", seal->name);
	}
	return 0;
}

void late_seals_free(struct buf *seals)
{
	for (size_t i = 0; i < buf_count(seals, struct late_seal); i++)
		close(buf_at(seals, struct late_seal, i)->fd);
	buf_free(seals);
}
