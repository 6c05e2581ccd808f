/*
 * What keeps userfaultfds open for as long as a program has its memory: made in the program, used by the
 * page server.
 */
#include "supervisor/memory/uffd_anchor.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/uring_abi.h"
#include "supervisor/target/fetch_new_fd.h"
#include "supervisor/uring/ring_place.h"

/* At once: the program, and children that it makes before its memory is there. */
#define SLOTS 4096

struct anchor {
	int ring;
	unsigned spaces;
	size_t slots;
	bool used[SLOTS];
};

/* ---- in the program ---- */

static int map_anchor(struct remote *r, int64_t number, struct err *e)
{
	struct ring_place p = {.remote = r};
	int failed =
		ring_place_begin(&p, e) || ring_place_map(&p, ANCHOR_AT, ANCHOR_SIZE, PROT_NONE,
						   number, URING_OFF_SQ_RING, e);

	return ring_place_end(&p, failed ? NULL : e) || failed ? -1 : 0;
}

int anchor_make(struct remote *r, struct err *e)
{
	const struct io_uring_params parameters = {0};
	uint64_t at = remote_scratch(r, sizeof(parameters), e);
	int64_t number, closed;
	cleanup_fd int ring = -1;
	int failed;

	if (!at || tracee_write(r->process->mem_fd, at, &parameters, sizeof(parameters), e) ||
		REMOTE_CALL(r, &number, e, SYS_io_uring_setup, 1, at))
		return -1;
	if (number < 0)
		return err_set(e, -number, "cannot create an io_uring");
	ring = fetch_new(r, number, e);
	failed = ring < 0 || map_anchor(r, number, e);
	if (REMOTE_CALL(r, &closed, failed ? NULL : e, SYS_close, number) || failed)
		return -1;
	return steal_fd(&ring);
}

bool anchor_is(const struct vma *v)
{
	return v->start == ANCHOR_AT && v->end == ANCHOR_AT + ANCHOR_SIZE && !v->prot &&
	       !strcmp(v->name, URING_LINK);
}

/* ---- outside ---- */

static int set_slot(const struct anchor *a, uint32_t slot, int fd)
{
	struct io_uring_files_update update = {.offset = slot, .fds = (uintptr_t)&fd};

	return syscall(SYS_io_uring_register, a->ring, IORING_REGISTER_FILES_UPDATE, &update,
		       1) == 1
		       ? 0
		       : -1;
}

struct anchor *anchor_open(int ring)
{
	struct anchor *a = xcalloc(1, sizeof(*a));
	struct rlimit files;
	int none[SLOTS];

	*a = (struct anchor){.ring = ring, .spaces = 1, .slots = SLOTS};
	/* No more than we may have open. */
	if (!getrlimit(RLIMIT_NOFILE, &files) && files.rlim_cur < SLOTS)
		a->slots = files.rlim_cur;
	memset(none, 0xff, sizeof(none));
	if (!syscall(SYS_io_uring_register, ring, IORING_REGISTER_FILES, none, a->slots))
		return a;
	anchor_close(a);
	return NULL;
}

struct anchor *anchor_share(struct anchor *a)
{
	if (a)
		a->spaces++;
	return a;
}

int anchor_hold(struct anchor *a, int uffd)
{
	for (size_t i = 0; a && i < a->slots; i++) {
		if (a->used[i])
			continue;
		if (set_slot(a, i, uffd))
			return -1;
		a->used[i] = true;
		return i;
	}
	return -1;
}

void anchor_release(struct anchor *a, int number)
{
	if (!a || number < 0)
		return;
	/* What cannot be taken out goes with the rest. */
	if (!set_slot(a, number, -1))
		a->used[number] = false;
}

void anchor_close(struct anchor *a)
{
	if (!a || --a->spaces)
		return;
	/* There may be none, after a failure of anchor_open(). */
	(void)syscall(SYS_io_uring_register, a->ring, IORING_UNREGISTER_FILES, NULL, 0);
	close(a->ring);
	free(a);
}
