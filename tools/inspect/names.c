/*
 * names.c - a table for each kind of number.
 */
#include "tools/inspect/names.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/user.h>

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

static const char *name_or_unknown(const char *const *names, size_t count, uint32_t i)
{
	return i < count && names[i] ? names[i] : "?";
}

const char *name_tag(uint32_t tag)
{
	static const char *const names[] = {
		[IMAGE_TAG_UPPER] = "upper",
		[IMAGE_TAG_LOWER] = "lower",
		[IMAGE_TAG_GPU] = "gpu",
	};

	return name_or_unknown(names, ARRAY_SIZE(names), tag);
}

const char *name_region_kind(uint32_t kind)
{
	static const char *const names[] = {
		[IMAGE_REGION_ANON] = "private",
		[IMAGE_REGION_FILE] = "file",
		[IMAGE_REGION_SHARED_FILE] = "shared-file",
		[IMAGE_REGION_SHARED] = "shared",
		[IMAGE_REGION_PRIVATE] = "private",
		[IMAGE_REGION_VDSO] = "vdso",
		[IMAGE_REGION_VVAR] = "vvar",
		[IMAGE_REGION_DEVICE] = "device",
		[IMAGE_REGION_SYSV] = "sysv",
		[IMAGE_REGION_URING] = "io_uring",
		[IMAGE_REGION_AIO] = "aio",
	};

	return name_or_unknown(names, ARRAY_SIZE(names), kind);
}

const char *name_object_kind(uint32_t kind)
{
	static const char *const names[] = {
		[IMAGE_OBJECT_SHARED_ANON] = "shared memory",
		[IMAGE_OBJECT_MEMFD] = "memfd",
		[IMAGE_OBJECT_UNLINKED] = "unlinked file",
		[IMAGE_OBJECT_PIPE] = "pipe",
		[IMAGE_OBJECT_PTY] = "terminal",
		[IMAGE_OBJECT_SOCKET] = "socket",
		[IMAGE_OBJECT_SHM] = "sysv-shm",
		[IMAGE_OBJECT_SEM] = "sysv-sem",
		[IMAGE_OBJECT_MSG] = "sysv-msg",
		[IMAGE_OBJECT_MQUEUE] = "message queue",
		[IMAGE_OBJECT_SHM_FILE] = "shared memory file",
		[IMAGE_OBJECT_URING] = "io_uring",
		[IMAGE_OBJECT_FILE] = "file",
		[IMAGE_OBJECT_DIRECTORY] = "removed directory",
		[IMAGE_OBJECT_EVENTS] = "inotify events",
	};

	return name_or_unknown(names, ARRAY_SIZE(names), kind);
}

const char *name_protection(uint32_t prot, char out[4])
{
	out[0] = prot & PROT_READ ? 'r' : '-';
	out[1] = prot & PROT_WRITE ? 'w' : '-';
	out[2] = prot & PROT_EXEC ? 'x' : '-';
	out[3] = 0;
	return out;
}

struct word {
	uint32_t bit;
	const char *text;
};

static const struct word flag_words[] = {
	{IMAGE_REGION_STACK, "stack"},
	{IMAGE_REGION_HEAP, "heap"},
	{IMAGE_REGION_GROWSDOWN, "growsdown"},
	{IMAGE_REGION_NORESERVE, "noreserve"},
	{IMAGE_REGION_LOCKED, "locked"},
	{IMAGE_REGION_LOCKONFAULT, "lockonfault"},
	{IMAGE_REGION_HUGETLB, "hugetlb"},
	{IMAGE_REGION_DROPPABLE, "droppable"},
	{0},
};

static const struct word advice_words[] = {
	{IMAGE_ADVICE_SEQUENTIAL, "sequential"},
	{IMAGE_ADVICE_RANDOM, "random"},
	{IMAGE_ADVICE_DONTFORK, "dontfork"},
	{IMAGE_ADVICE_DONTDUMP, "dontdump"},
	{IMAGE_ADVICE_WIPEONFORK, "wipeonfork"},
	{IMAGE_ADVICE_MERGEABLE, "mergeable"},
	{IMAGE_ADVICE_HUGEPAGE, "hugepage"},
	{IMAGE_ADVICE_NOHUGEPAGE, "nohugepage"},
	{IMAGE_ADVICE_GUARD, "guard"},
	{0},
};

static void add_words(uint32_t bits, const struct word *words, size_t start, struct buf *out)
{
	for (; words->bit; words++) {
		if (bits & words->bit)
			buf_printf(out, "%s%s", out->len > start ? "," : "", words->text);
		bits &= ~words->bit;
	}
	if (bits)
		buf_printf(out, "%s%#x", out->len > start ? "," : "", bits);
}

void name_region_flags(const struct image_region *r, struct buf *out)
{
	size_t start = out->len;

	add_words(r->flags, flag_words, start, out);
	add_words(r->advice, advice_words, start, out);
}

static void add_signal(int signal, struct buf *out)
{
	const char *name = sigabbrev_np(signal);

	/* The kernel's numbers: the C library keeps the first two of real time for itself. */
	if (name)
		buf_printf(out, "%s", name);
	else if (signal == 34)
		buf_printf(out, "RTMIN");
	else if (signal > 34)
		buf_printf(out, "RTMIN+%d", signal - 34);
	else
		buf_printf(out, "%d", signal);
}

void name_signals(uint64_t set, struct buf *out)
{
	bool most = __builtin_popcountll(set) > 32;
	const char *between = "";

	if (most) {
		buf_printf(out, "all but ");
		set = ~set;
	}
	for (int s = 1; s <= 64; s++) {
		if (!(set >> (s - 1) & 1))
			continue;
		buf_printf(out, "%s", between);
		add_signal(s, out);
		between = ",";
	}
	if (most && !set)
		buf_printf(out, "none");
}

/* ---- threads ---- */

/* System calls in which a thread may be found waiting. */
static const struct {
	long number;
	const char *name;
} calls[] = {
#define CALL(name)                                                                             \
	{                                                                                      \
		SYS_##name, #name                                                              \
	}
	CALL(accept),
	CALL(accept4),
	CALL(clock_nanosleep),
	CALL(clone),
	CALL(clone3),
	CALL(close),
	CALL(connect),
	CALL(epoll_pwait),
	CALL(epoll_pwait2),
	CALL(epoll_wait),
	CALL(fallocate),
	CALL(fcntl),
	CALL(fdatasync),
	CALL(flock),
	CALL(fsync),
	CALL(futex),
	CALL(futex_waitv),
	CALL(getdents64),
	CALL(getrandom),
	CALL(io_getevents),
	CALL(io_pgetevents),
	CALL(io_uring_enter),
	CALL(ioctl),
	CALL(mq_timedreceive),
	CALL(mq_timedsend),
	CALL(msgrcv),
	CALL(msgsnd),
	CALL(nanosleep),
	CALL(open),
	CALL(openat),
	CALL(pause),
	CALL(poll),
	CALL(ppoll),
	CALL(pread64),
	CALL(preadv),
	CALL(pselect6),
	CALL(pwrite64),
	CALL(pwritev),
	CALL(read),
	CALL(readv),
	CALL(recvfrom),
	CALL(recvmmsg),
	CALL(recvmsg),
	CALL(restart_syscall),
	CALL(rt_sigsuspend),
	CALL(rt_sigtimedwait),
	CALL(sched_yield),
	CALL(select),
	CALL(semop),
	CALL(semtimedop),
	CALL(sendfile),
	CALL(sendmmsg),
	CALL(sendmsg),
	CALL(sendto),
	CALL(splice),
	CALL(tee),
	CALL(vmsplice),
	CALL(wait4),
	CALL(waitid),
	CALL(write),
	CALL(writev),
#undef CALL
};

static void add_call(int64_t number, struct buf *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		if (calls[i].number == number) {
			buf_printf(out, "%s", calls[i].name);
			return;
		}
	}
	buf_printf(out, "system call %" PRId64, number);
}

/* The kernel's ERESTARTSYS to ERESTART_RESTARTBLOCK (include/linux/errno.h): the call is to
 * be continued. */
static bool is_interrupted(int64_t rax)
{
	return rax <= -512 && rax >= -516;
}

void name_thread_state(const struct image_thread *t, struct buf *out)
{
	struct user_regs_struct regs;
	bool waits;

	_Static_assert(sizeof(regs) == sizeof(t->regs), "registers");
	if (t->flags & IMAGE_THREAD_ENDED) {
		buf_printf(out, "ended");
		return;
	}
	memcpy(&regs, t->regs, sizeof(regs));
	waits = t->syscall_class != IMAGE_SYSCALL_NONE || is_interrupted(regs.rax);
	if ((int64_t)regs.orig_rax < 0) {
		buf_printf(out,
			t->flags & IMAGE_THREAD_IN_VDSO ? "running in the vdso" : "running");
		return;
	}
	buf_printf(out, waits ? "in " : "back from ");
	add_call(regs.orig_rax, out);
	if (t->syscall_class == IMAGE_SYSCALL_NONE ||
		t->syscall_left_ns == IMAGE_SYSCALL_FOREVER)
		return;
	buf_printf(out, ", %.3f s left", t->syscall_left_ns / 1e9);
}
