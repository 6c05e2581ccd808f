/* Which pages of memory that ranks share are whose, as a head says that the program may have overwritten
 * (supervisor/fd/shared_window.h). */
#include "supervisor/fd/shared_window.h"

#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "lib/util.h"
#include "shared/shared_window.h"
#include "t/unit/tap.h"

#define PAGE SHARED_WINDOW_PAGE

static union {
	struct shared_window head;
	char bytes[PAGE];
} memory;

static void make(void)
{
	memset(&memory, 0, sizeof(memory));
	memory.head.magic = SHARED_WINDOW_MAGIC;
	memory.head.ranks = 3;
	memory.head.rank[0] = (struct shared_window_rank){0, 4, 0};
	memory.head.rank[1] = (struct shared_window_rank){3 * PAGE, 1, 0};
	memory.head.rank[2] = (struct shared_window_rank){3 * PAGE, 7, 0};
}

static bool has(int rank, uint64_t from, uint64_t to)
{
	uint64_t is_from = 1, is_to = 1;
	struct err e = ERR_INIT;

	return !fd_window_part(getpid(), (uintptr_t)&memory, rank, &is_from, &is_to, &e) &&
	       is_from == from && is_to == to;
}

static bool is_refused(int rank)
{
	uint64_t from, to;
	struct err e = ERR_INIT;

	return fd_window_part(getpid(), (uintptr_t)&memory, rank, &from, &to, &e) &&
	       strstr(e.msg, "has been overwritten");
}

/* ---- the file at a restart ---- */

enum { STRANGER = 54321 };

static bool opens(const char *name, uid_t owner)
{
	struct err e = ERR_INIT;
	cleanup_fd int fd = fd_window_open(name, owner, &e);

	return fd >= 0;
}

static void look_at_owners(void)
{
	cleanup_free char *name = xasprintf(SHARED_WINDOW_PREFIX "%032x", getpid());
	cleanup_free char *path = xasprintf("%s-unit", name), *other = xasprintf("%s-2", name);

	struct statfs fs;

	if (statfs("/dev/shm", &fs) || fs.f_type != TMPFS_MAGIC)
		return;
	fd_window_share("unit");
	ok(opens(name, geteuid()) && opens(name, geteuid()),
		"whoever comes first makes the file");
	ok(!link(path, other) && !opens(name, geteuid()), "one with another name is not taken");
	(void)unlink(other);
	ok(!chmod(path, 0640) && !opens(name, geteuid()), "nor one that others may read");
	(void)chmod(path, 0600);
	if (!geteuid())
		ok(!chown(path, STRANGER, STRANGER) && !opens(name, 0) && opens(name, STRANGER),
			"nor another's but the owner that it is to have");
	(void)unlink(path);
	fd_window_share(NULL);
}

int main(void)
{
	make();
	ok(has(4, 0, 3 * PAGE), "the first rank has the head and its own pages");
	ok(has(1, 3 * PAGE, 3 * PAGE), "a rank whose pages others have has none");
	ok(has(7, 3 * PAGE, UINT64_MAX), "the last one has the rest");
	ok(has(-1, 0, UINT64_MAX), "who is in no job has all");
	ok(is_refused(2), "who is no rank of the window is refused");
	memory.head.freed = 1;
	ok(has(1, 0, UINT64_MAX), "of a window that has been freed each has all");

	make();
	memory.head.rank[1].from = PAGE + 1;
	ok(is_refused(4) && is_refused(1), "parts that begin within pages are refused");
	make();
	memory.head.rank[2].from = PAGE;
	ok(is_refused(1), "parts that end before they begin are refused");
	make();
	memory.head.rank[0].from = PAGE;
	ok(is_refused(4), "a head that is nobody's is refused");
	make();
	memory.head.ranks = UINT32_MAX;
	ok(is_refused(4), "too many ranks are refused");
	memory.head.magic = 0;
	ok(is_refused(4), "another head is refused");

	ok(fd_window_is(SHARED_WINDOW_PREFIX "0123456789abcdef0123456789abcdef (deleted)") &&
			!fd_window_is(SHARED_WINDOW_PREFIX "0123") &&
			!fd_window_is("/dev/shm/else"),
		"files are known by their names");
	ok(!fd_window_is_shared(SHARED_WINDOW_PREFIX "0123456789abcdef0123456789abcdef"),
		"and are shared in the restart of a job only");
	look_at_owners();
	return done_testing();
}
