/* Mappings of the rings of a process. */
#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "supervisor/uring/ring_place.h"
#include "supervisor/uring/uring_process_restore.h"

struct mapping {
	struct new_process *np;
	struct remote remote;
	struct ring_place place;
};

static const struct {
	uint32_t advice;
	int madvise;
} advices[] = {
	{IMAGE_ADVICE_DONTFORK, MADV_DONTFORK},
	{IMAGE_ADVICE_DONTDUMP, MADV_DONTDUMP},
};

static int map_ring(struct mapping *m, const struct image_region *g, int fd)
{
	uint64_t size = g->end - g->start;
	int64_t at;

	if (ring_place_map(&m->place, g->start, size, g->prot, fd, g->offset, m->np->e))
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(advices); i++)
		if (g->advice & advices[i].advice &&
			REMOTE_CALL(&m->remote, &at, m->np->e, SYS_madvise, g->start, size,
				advices[i].madvise))
			return -1;
	return 0;
}

/* A descriptor of the process that leads to object number @object. */
static int object_number(const struct return_of_ring *r, uint32_t object)
{
	for (size_t i = 0; i < r->fd_count; i++) {
		const struct image_description *x =
			restore_ring_description(r->np, r->fds[i].description);

		if (x->kind == IMAGE_FD_URING && x->object == object)
			return r->fds[i].fd;
	}
	return -1;
}

static int map_regions(struct return_of_ring *r, struct mapping *m)
{
	const struct image_region *g;
	size_t count;

	g = image_note_array(r->np->img, IMAGE_NOTE_REGIONS, struct image_region, &count);
	for (size_t i = 0; i < count; i++) {
		int fd;

		if (g[i].kind != IMAGE_REGION_URING)
			continue;
		fd = object_number(r, g[i].object);
		if (fd < 0)
			return err_set(r->np->e, 0,
				"the image is damaged: no descriptor leads to a mapped "
				"io_uring");
		if (map_ring(m, &g[i], fd))
			return -1;
	}
	return 0;
}

static int map_placed(struct return_of_ring *r)
{
	struct mapping m = {.np = r->np};
	int failed;

	if (remote_begin(&m.remote, &r->np->process, &r->np->process.threads[0], r->np->e))
		return -1;
	m.place.remote = &m.remote;
	failed = ring_place_begin(&m.place, r->np->e) || map_regions(r, &m);
	failed |= ring_place_end(&m.place, failed ? NULL : r->np->e);
	return remote_end(&m.remote, failed ? NULL : r->np->e) || failed ? -1 : 0;
}

/* As prlimit(2) of RLIMIT_AS, made by the process @np itself. -1 and errno. */
static int limit_by_itself(struct new_process *np, const struct rlimit *set, struct rlimit *was)
{
	struct rlimit limits[2] = {{0}};
	struct err ignored = {0};
	struct remote remote;
	int64_t result = -EPERM;
	uint64_t at;
	int failed;

	if (remote_begin(&remote, &np->process, &np->process.threads[0], &ignored))
		goto out;
	if (set)
		limits[0] = *set;
	at = remote_scratch(&remote, sizeof(limits), &ignored);
	failed = !at ||
		 tracee_write(np->process.mem_fd, at, limits, sizeof(limits), &ignored) ||
		 REMOTE_CALL(&remote, &result, &ignored, SYS_prlimit64, 0, RLIMIT_AS,
			 set ? at : 0, at + sizeof(limits[0])) ||
		 tracee_read(np->process.mem_fd, at, limits, sizeof(limits), &ignored);
	if (remote_end(&remote, &ignored) || failed)
		result = -EIO;
	else if (was)
		*was = limits[1];
out:
	errno = -result;
	return result ? -1 : 0;
}

/* A process that is another user's by now does not let us change its limits without CAP_SYS_RESOURCE, which root
 * may lack. */
static int limit_address_space(
	struct new_process *np, const struct rlimit *set, struct rlimit *was)
{
	if (!prlimit(np->process.pid, RLIMIT_AS, set, was))
		return 0;
	return errno == EPERM ? limit_by_itself(np, set, was) : -1;
}

/* All of the address space is to be mapped for a moment. */
static int map_rings(struct return_of_ring *r)
{
	struct rlimit most = {RLIM_INFINITY, RLIM_INFINITY}, own;
	int failed;

	if (limit_address_space(r->np, NULL, &own))
		return err_set(r->np->e, errno, "cannot query a resource limit");
	if (own.rlim_max != RLIM_INFINITY && limit_address_space(r->np, &most, NULL))
		most.rlim_max = most.rlim_cur = own.rlim_max; /* without the right to more */
	if (limit_address_space(r->np, &most, NULL))
		return err_set(r->np->e, errno, "cannot set a resource limit");
	failed = map_placed(r);
	if (failed && most.rlim_max != RLIM_INFINITY)
		err_append(r->np->e,
			" (for this a limit of the address space, RLIMIT_AS, is in the way: it "
			"is %llu KiB; restart it under ulimit -v unlimited)",
			(unsigned long long)most.rlim_max >> 10);
	if (limit_address_space(r->np, &own, NULL) && !failed)
		return err_set(r->np->e, errno, "cannot set a resource limit");
	return failed;
}

static bool has_regions(const struct new_process *np)
{
	const struct image_region *g;
	size_t count;

	g = image_note_array(np->img, IMAGE_NOTE_REGIONS, struct image_region, &count);
	for (size_t i = 0; i < count; i++)
		if (g[i].kind == IMAGE_REGION_URING)
			return true;
	return false;
}

int restore_ring_mappings(struct return_of_ring *r)
{
	return has_regions(r->np) ? map_rings(r) : 0;
}
