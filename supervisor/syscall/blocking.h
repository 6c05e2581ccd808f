/*
 * blocking.h - the system calls that a stop does not leave as they were (interrupted_call.h):
 * how long each may take, and which threads are blocked in one.
 */
#ifndef SUPERVISOR_SYSCALL_BLOCKING_H
#define SUPERVISOR_SYSCALL_BLOCKING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/user.h>
#include <time.h>

#include "supervisor/target/process.h"

#define NS_PER_MS 1000000ull
#define NS_PER_S  1000000000ull

/* How long a thread may take to fall asleep again before we stop looking. */
#define SETTLE_NS (200 * NS_PER_MS)

enum timeout {
	TIMEOUT_NONE,
	TIMEOUT_MS,       /* an int in the argument; negative: for ever */
	TIMEOUT_TIMESPEC, /* the argument points to one; NULL: for ever */
	TIMEOUT_ABSOLUTE, /* of itself right after any restart */
	TIMEOUT_RECEIVE,  /* SO_RCVTIMEO of the socket that the first argument names */
	TIMEOUT_SEND,     /* SO_SNDTIMEO */
	TIMEOUT_RING,     /* the argument points to a struct io_uring_getevents_arg */
};

struct blocking_call {
	long nr;
	enum timeout timeout;
	int argument;
	/* Returns EINTR after every stop, although nothing has happened to it. */
	bool plain_eintr;
	/* What the time-out really is, when that depends on other arguments. */
	enum timeout (*decide)(const struct user_regs_struct *regs);
	/* The argument that may point to where the kernel puts what is left when the call is
	 * interrupted; 0 for none. */
	int remainder;
};

/* NULL: none of them. */
const struct blocking_call *blocking_call(long nr);

enum timeout blocking_timeout(
	const struct blocking_call *call, const struct user_regs_struct *regs);

/* Of a TIMEOUT_RING: the address of its struct timespec; 0: for ever. */
int blocking_ring_timeout(const struct process *p, const struct user_regs_struct *regs,
	uint64_t *at, struct err *e);

/* Whether the thread is blocked in a call; @regs then has its number and arguments. */
bool blocked_in_call(pid_t pid, pid_t tid, struct user_regs_struct *regs);

/* How often the thread has gone to sleep so far. */
uint64_t blocked_sleeps(pid_t pid, pid_t tid);

/* A duplicate of the target's descriptor @fd, the caller's to close; -1. */
int blocking_socket(const struct process *p, int fd);

/* Which option of the socket has time-outs of @kind. */
int blocking_socket_option(enum timeout kind);

/* Nanoseconds as a relative time-out has them: rounded up, so that no sleep ends early. */
static inline uint64_t blocking_ms(uint64_t ns)
{
	return (ns + NS_PER_MS - 1) / NS_PER_MS;
}

static inline struct timespec blocking_timespec(uint64_t ns)
{
	return (struct timespec){.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};
}

/* Add to @records (struct sleep_record) that @t sleeps in call @nr at @pc. */
void sleep_record_add(
	const struct thread *t, long nr, uint64_t pc, uint64_t sleeps, struct buf *records);

#endif
