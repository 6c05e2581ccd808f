/*
 * hook.c - each system call that gets another meaning in the lower half: mappings go into its
 * window, descriptors above a base, signal handling is refused or passed on; everything else
 * is made as it is.
 */
#include "bringup/hook.h"

#include <linux/errno.h>
#include <linux/fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>

#include "shared/raw.h"
#include "shared/records.h"
#include "shared/address_windows.h"

#define SIGNALS_SIZE 8 /* of the kernel's sigset_t */

int hook_fd_base;

/* ---- memory ---- */

static uint64_t whole_pages(uint64_t size)
{
	return (size + 4095) & ~4095ul;
}

static long mmap_raw(long addr, const long a[6], long flags)
{
	return raw(SYS_mmap, addr, a[1], a[2], flags, a[4], a[5]);
}

/* The driver asks for certain addresses by hint and takes no others, so a hint is met where the
 * kernel would have met it. Where not, the window it is: the kernel's choice lies outside. */
static long mmap_hinted(const long a[6])
{
	long r;

	if (!a[0])
		return -EEXIST;
	r = mmap_raw(a[0] & ~4095l, a, a[3] | MAP_FIXED_NOREPLACE);
	return r == -EPERM ? -EEXIST : r; /* below vm.mmap_min_addr */
}

/* What the driver is going to give back of what it believes to have. */
static struct {
	uint64_t start, size;
} beyond;

/* No more than what is asked for, as there may be something behind it. */
static long mmap_at_hint(enum space_part part, const long a[6])
{
	uint64_t size, at = a[0] ? 0 : space_take_hinted(part, a[1], &size);
	long r;

	if (!at)
		return -EEXIST;
	r = raw(SYS_mmap, at, size, a[2], a[3] | MAP_FIXED_NOREPLACE, a[4], a[5]);
	if (raw_failed(r)) {
		space_release(at, size);
		return -EEXIST;
	}
	beyond.start = at + size;
	beyond.size = a[1] - size;
	return r;
}

/* Addresses that something else has got hold of stay taken; try behind them. */
static long mmap_taken(enum space_part part, const long a[6])
{
	uint64_t at;
	long r;

	for (;;) {
		at = space_take(part, whole_pages(a[1]));
		if (!at)
			return -ENOMEM;
		r = mmap_raw(at, a, a[3] | MAP_FIXED_NOREPLACE);
		if (r != -EEXIST)
			break;
		space_found(at, whole_pages(a[1]));
	}
	if (raw_failed(r))
		space_release(at, a[1]);
	return r;
}

long hook_mmap(enum space_part part, const long a[6])
{
	long r = mmap_at_hint(part, a);

	if (r != -EEXIST)
		return r;

	if (!a[1] || (uint64_t)a[1] > LOWER_WINDOW_SIZE)
		return a[1] ? -ENOMEM : -EINVAL;
	r = a[3] & (MAP_FIXED | MAP_FIXED_NOREPLACE) ? mmap_raw(a[0], a, a[3]) : mmap_hinted(a);
	if (!raw_failed(r))
		space_mark(r, a[1]);
	if (r != -EEXIST || a[3] & (MAP_FIXED | MAP_FIXED_NOREPLACE))
		return r;
	return mmap_taken(part, a);
}

static uintptr_t next_place;

void hook_place_next(uintptr_t address)
{
	next_place = address;
}

/* The mapping of a library's whole extent comes first, without an address: of the file, with MAP_DENYWRITE,
 * which tells it from ld.so's cache, or of nothing, for alignment (elf/dl-map-segments.h of glibc). */
static bool maps_library(const long a[6])
{
	return !a[0] && ((int)a[4] < 0 ? a[2] == PROT_NONE : !!(a[3] & MAP_DENYWRITE));
}

static long mmap_placed(const long a[6])
{
	uintptr_t at = next_place;
	long r;

	if (!at || !maps_library(a))
		return -EEXIST;
	next_place = 0;
	r = mmap_raw(at, a, a[3] | MAP_FIXED_NOREPLACE);
	if (!raw_failed(r))
		space_mark(r, a[1]);
	return r;
}

/* Of the libc's own mappings, stacks are set apart: they come and go with threads. */
static enum space_part libc_part(const long a[6])
{
	return a[3] & MAP_STACK ? SPACE_STACKS : SPACE_LIBC;
}

static long hook_munmap(long addr, long size)
{
	long r;

	if (beyond.size && (uint64_t)addr == beyond.start && (uint64_t)size == beyond.size) {
		beyond.size = 0;
		return 0;
	}
	r = raw(SYS_munmap, addr, size);
	if (!raw_failed(r))
		space_release(addr, size);
	return r;
}

/* mremap(2) removes what is where it moves something to, so the place is made sure of before.
 */
static long mremap_moving(enum space_part part, long old, long old_size, long size)
{
	const long place[6] = {
		0, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0};
	long to = mmap_taken(part, place), r;

	if (raw_failed(to))
		return to;
	r = raw(SYS_mremap, old, old_size, size, MREMAP_MAYMOVE | MREMAP_FIXED, to);
	if (raw_failed(r)) {
		raw(SYS_munmap, to, size); /* or it is gone */
		space_release(to, size);
	}
	return r;
}

static long hook_mremap(enum space_part part, const struct site_registers *s)
{
	long old = s->rdi, old_size = s->rsi, size = s->rdx, flags = s->r10, r;

	if (flags & MREMAP_FIXED) {
		r = raw(SYS_mremap, old, old_size, size, flags, s->r8);
	} else {
		r = raw(SYS_mremap, old, old_size, size, flags & ~MREMAP_MAYMOVE, 0);
		if (r == -ENOMEM && flags & MREMAP_MAYMOVE)
			r = mremap_moving(part, old, old_size, size);
	}
	if (!raw_failed(r)) {
		space_release(old, old_size);
		space_mark(r, size);
	}
	return r;
}

/* ---- System V shared memory, which UCX has for messages between ranks ---- */

/* shmdt(2) is not told a size. An attachment that does not fit in here stays taken when it is
 * detached. */
#define ATTACHED 1024

static struct {
	uint32_t lock;
	struct space_range ranges[ATTACHED];
} attached;

static void note_attached(uint64_t start, uint64_t end)
{
	raw_lock(&attached.lock);
	for (unsigned i = 0; i < ATTACHED; i++)
		if (!attached.ranges[i].end || attached.ranges[i].start == start) {
			attached.ranges[i] = (struct space_range){start, end};
			break;
		}
	raw_unlock(&attached.lock);
}

static void release_attached(uint64_t start)
{
	struct space_range r = {0};

	raw_lock(&attached.lock);
	for (unsigned i = 0; i < ATTACHED && !r.end; i++)
		if (attached.ranges[i].end && attached.ranges[i].start == start) {
			r = attached.ranges[i];
			attached.ranges[i] = (struct space_range){0};
		}
	raw_unlock(&attached.lock);
	space_release(r.start, r.end - r.start);
}

/* The kernel says EINVAL where there is something already (without SHM_REMAP), and to much else. */
static long shmat_taken(long id, long flags, uint64_t size)
{
	for (int i = 0; i < 64; i++) {
		uint64_t at = space_take(SPACE_LIBC, size);
		long r;

		if (!at)
			return -ENOMEM;
		r = raw(SYS_shmat, id, at, flags);
		if (!raw_failed(r))
			return r;
		if (r != -EINVAL) {
			space_release(at, size);
			return r;
		}
		space_found(at, size);
	}
	return -ENOMEM;
}

static long hook_shmat(long id, long address, long flags)
{
	struct shmid_ds d;
	uint64_t size;
	long r = raw(SYS_shmctl, id, IPC_STAT, &d);

	/* A segment that we may not ask about (EACCES) we may not attach either. */
	if (raw_failed(r))
		return r;
	size = whole_pages(d.shm_segsz);
	r = address ? raw(SYS_shmat, id, address, flags) : shmat_taken(id, flags, size);
	if (raw_failed(r))
		return r;
	if (address)
		space_mark(r, size);
	note_attached(r, r + size);
	return r;
}

static long hook_shmdt(long address)
{
	long r = raw(SYS_shmdt, address);

	if (!raw_failed(r))
		release_attached(address);
	return r;
}

/* ---- descriptors ---- */

static long dup_above_base(int fd, bool cloexec)
{
	return raw(SYS_fcntl, fd, cloexec ? F_DUPFD_CLOEXEC : F_DUPFD, hook_fd_base);
}

/* The base may lie above the program's soft limit, where its own descriptors cannot come; then
 * the limit is raised for the moment of the duplication. */
static long dup_over_limit(int fd, bool cloexec)
{
	struct rlimit old, wide;
	long r;

	if (raw_failed(raw(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, &old)))
		return -EMFILE;
	wide = old;
	wide.rlim_cur = old.rlim_max;
	if (raw_failed(raw(SYS_prlimit64, 0, RLIMIT_NOFILE, &wide, 0)))
		return -EMFILE;
	r = dup_above_base(fd, cloexec);
	raw(SYS_prlimit64, 0, RLIMIT_NOFILE, &old, 0); /* cannot fail: it was allowed before */
	return r;
}

/* A checkpoint leaves out what is marked, and nothing else. */
static long mark_fd(long fd)
{
	unsigned long bit = fd - hook_fd_base;

	if (fd >= hook_fd_base && bit < RECORDS_FDS)
		__atomic_fetch_or(
			&RECORDS_SAVED->fds[bit / 64], 1ul << bit % 64, __ATOMIC_RELAXED);
	return fd;
}

/* Where descriptor @fd, just made, goes. When there is no room above the base it stays where it
 * is: the call worked, and the checkpoint refuses descriptors it does not know. */
static long move_fd(long fd)
{
	bool cloexec;
	long r;

	if (fd < 0 || fd >= hook_fd_base)
		return fd < 0 ? fd : mark_fd(fd);
	cloexec = raw(SYS_fcntl, fd, F_GETFD) & FD_CLOEXEC;
	r = dup_above_base(fd, cloexec);
	if (r == -EINVAL || r == -EMFILE)
		r = dup_over_limit(fd, cloexec);
	if (raw_failed(r)) {
		raw_complain("no room for descriptors of the lower half");
		return fd;
	}
	raw(SYS_close, fd); /* ours alone: nothing is lost by a failure */
	return mark_fd(r);
}

static long move_pair(long r, long pair)
{
	int *fds = (int *)pair;

	if (!raw_failed(r)) {
		fds[0] = move_fd(fds[0]);
		fds[1] = move_fd(fds[1]);
	}
	return r;
}

static bool makes_fd(long nr)
{
	switch (nr) {
	case SYS_open:
	case SYS_openat:
	case SYS_openat2:
	case SYS_open_by_handle_at:
	case SYS_creat:
	case SYS_socket:
	case SYS_accept:
	case SYS_accept4:
	case SYS_dup:
	case SYS_eventfd:
	case SYS_eventfd2:
	case SYS_epoll_create:
	case SYS_epoll_create1:
	case SYS_inotify_init:
	case SYS_inotify_init1:
	case SYS_fanotify_init:
	case SYS_mq_open:
	case SYS_memfd_create:
	case SYS_timerfd_create:
	case SYS_signalfd:
	case SYS_signalfd4:
	case SYS_perf_event_open:
	case SYS_pidfd_open:
	case SYS_pidfd_getfd:
	case SYS_userfaultfd:
		return true;
	}
	return false;
}

static bool makes_pair(long nr)
{
	return nr == SYS_pipe || nr == SYS_pipe2 || nr == SYS_socketpair;
}

/* F_DUPFD goes above the base at once; the rest is let alone. */
static int hook_fcntl(struct site_registers *s)
{
	if ((int)s->rsi != F_DUPFD && (int)s->rsi != F_DUPFD_CLOEXEC)
		return 0;
	s->nr = move_fd(raw(SYS_fcntl, s->rdi, s->rsi, s->rdx));
	return 1;
}

/* ---- signals ---- */

/* Handlers are the program's. The lower half is told that all are at their default. */
static long hook_sigaction(const struct site_registers *s)
{
	if (s->rdi < 1 || s->rdi >= 65 || s->r10 != SIGNALS_SIZE)
		return -EINVAL;
	if (s->rdx)
		raw_zero((void *)s->rdx, 32 /* struct kernel_sigaction */);
	return 0;
}

/*
 * A thread of the lower half has all signals blocked for ever, but for the two that glibc uses
 * itself: signals for the process are for threads of the program. A thread of the program that
 * is down here decides for itself.
 */
static int hook_sigprocmask(struct site_registers *s)
{
	static const uint64_t all = ~(1ul << 31 | 1ul << 32); /* 32 and 33 */
	long r;

	if (!in_lower_window((unsigned long)s) || !s->rsi || s->r10 != SIGNALS_SIZE)
		return 0;
	r = raw(SYS_rt_sigprocmask, SIG_SETMASK, &all, s->rdx, SIGNALS_SIZE);
	s->nr = r;
	return 1;
}

/* ---- */

/* Only what follows is patched; other numbers come by sites with a variable number. */
int hook_wants(int nr)
{
	switch (nr) {
	case SYS_mmap:
	case SYS_munmap:
	case SYS_mremap:
	case SYS_brk:
	case SYS_shmat:
	case SYS_shmdt:
	case SYS_rt_sigaction:
	case SYS_rt_sigprocmask:
	case SYS_fcntl:
	case SITE_VARIABLE:
		return 1;
	}
	return makes_fd(nr) || makes_pair(nr);
}

/* ld.so opens libraries and closes them again; it has no say on signals before libc has. */
int hook_wants_of_ldso(int nr)
{
	return nr == SYS_mmap || nr == SYS_munmap || nr == SYS_mremap || nr == SYS_brk;
}

/* All else a library asks its libc for. */
int hook_wants_of_library(int nr)
{
	return nr == SYS_brk;
}

static int hook_syscall(struct site_registers *s, bool ldso)
{
	const long args[6] = {s->rdi, s->rsi, s->rdx, s->r10, s->r8, s->r9};
	enum space_part part = ldso ? SPACE_LDSO : libc_part(args);

	switch (s->nr) {
	case SYS_mmap:
		s->nr = ldso ? mmap_placed(args) : -EEXIST;
		if (s->nr == -EEXIST)
			s->nr = hook_mmap(part, args);
		if (ldso && !raw_failed(s->nr))
			core_mapped(s->nr, args[1], args[2], args[4], args[5]);
		return 1;
	case SYS_munmap:
		s->nr = hook_munmap(s->rdi, s->rsi);
		return 1;
	case SYS_mremap:
		s->nr = hook_mremap(ldso ? SPACE_LDSO : SPACE_LIBC, s);
		return 1;
	case SYS_brk:
		/* A break that never moves: malloc makes do with mmap. */
		s->nr = LOWER_PART_LDSO;
		return 1;
	case SYS_shmat:
		s->nr = hook_shmat((int)s->rdi, s->rsi, (int)s->rdx);
		return 1;
	case SYS_shmdt:
		s->nr = hook_shmdt(s->rdi);
		return 1;
	case SYS_rt_sigaction:
		s->nr = hook_sigaction(s);
		return 1;
	case SYS_rt_sigprocmask:
		return hook_sigprocmask(s);
	case SYS_fcntl:
		return hook_fcntl(s);
	}
	if (makes_fd(s->nr)) {
		s->nr = move_fd(raw6(s->nr, s->rdi, s->rsi, s->rdx, s->r10, s->r8, s->r9));
		return 1;
	}
	if (makes_pair(s->nr)) {
		long pair = s->nr == SYS_socketpair ? s->r10 : s->rdi;

		s->nr = move_pair(raw6(s->nr, s->rdi, s->rsi, s->rdx, s->r10, 0, 0), pair);
		return 1;
	}
	return 0;
}

int hook_ldso(struct site_registers *s)
{
	return hook_syscall(s, true);
}

int hook_libc(struct site_registers *s)
{
	return hook_syscall(s, false);
}
