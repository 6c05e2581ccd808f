/*
 * namespace_init.h - the namespaces that a program is brought back in when its process ids cannot be had
 * outside: pid and mount namespace, for an ordinary user in a user namespace (doc/decisions/restart.md), and
 * the init of the program there: the first process of the pid namespace, or one of several inits in it
 * (shared_namespace.h).
 *
 * It is the program's parent. It reports to the supervisor what that would otherwise learn
 * by waitpid(2), and reaps all that ends. It lives on when the supervisor dies, so that the
 * program does, and ends with the last process of the program: processes that the program
 * leaves behind live on, as they do without trecr.
 */
#ifndef SUPERVISOR_START_NAMESPACE_INIT_H
#define SUPERVISOR_START_NAMESPACE_INIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "supervisor/target/clocks.h"

/* Messages on the SOCK_SEQPACKET socket pair, from the init to the supervisor. */
enum namespace_report_kind {
	NAMESPACE_READY, /* sent by the program's process itself: its credentials tell its id; value: 0 */
	NAMESPACE_FAILED,  /* value: errno, text: what could not be done */
	NAMESPACE_STOPPED, /* value: the signal */
	NAMESPACE_ENDED,   /* value: status as of waitpid(2) */
};

struct namespace_report {
	uint32_t kind;
	int32_t value;
	char text[248];
};

/* From the supervisor to the init: a byte when the init (and so the program) shall no
 * longer die with the supervisor. */

struct namespace_plan {
	pid_t pid;           /* id that the program's process is to have */
	bool user_namespace; /* it is in another user namespace than ours, too */
	uid_t uid;           /* which is mapped to itself there */
	gid_t gid;
	bool terminals;                    /* mount a new /dev/pts */
	const struct clock_shifts *clocks; /* of a new time namespace; NULL: none */
	int socket;                        /* the init's end */
	bool shared; /* the init is not the first process, which has mapped the user, and */
	int hold;    /* is told of the init by this (struct shared_namespace) */
	void (*child)(void *arg); /* what that process runs; does not return */
	void *arg;
};

/* Be the init. For the first process in a fresh pid namespace, or one in a shared one; in a fresh mount namespace. */
void namespace_init(const struct namespace_plan *plan) __attribute__((noreturn));

#endif
