/*
 * shared_namespace.h - namespaces that the programs of several supervisors are brought back in together: so their processes
 * know each other by their ids, as before.
 *
 * The first process is no program's. Each program has an init of its own (namespace_init.h), which adopts the program's
 * orphans. The first process ends when all these have ended and no supervisor is left that could make another one. Where
 * an init is killed, it kills what comes to it, which is that init's program.
 */
#ifndef SUPERVISOR_START_SHARED_NAMESPACE_H
#define SUPERVISOR_START_SHARED_NAMESPACE_H

#include <stdbool.h>
#include <sys/types.h>

#include "lib/err.h"
#include "lib/procfs.h"
#include "lib/util.h"

/* What one supervisor would have. */
struct namespace_wish {
	bool needed; /* its program cannot have its ids here */
	bool apart;  /* it is not to be in a namespace with others */
	bool whole;  /* it is to be with all of its node, or by itself */
	bool user;   /* as of struct shared_namespace_plan */
	const struct buf *
		ids; /* pid_t, from the lowest to the highest: those of its program; 0 counts for none */
};

struct shared_namespace_plan {
	bool user;        /* a user namespace, too */
	pid_t first_free; /* processes that may have any id get this one, and those that follow */
};

struct shared_namespace {
	struct shared_namespace_plan plan;
	struct proc_identity first; /* its first process, as its id is here; pid 0: none */
	int pidfd;                  /* of that process */
	int hold;                   /* the namespace stays while any supervisor has this open */
};

#define SHARED_NAMESPACE_NONE                                                                  \
	{                                                                                      \
		.pidfd = -1, .hold = -1                                                        \
	}

/* Whether setns(2) is allowed here, which containers may forbid; @user: also of a user namespace. */
bool shared_namespace_allowed(bool user);

/* Make it; its first process is a child of ours. With @ns->first.pid 0 it cannot be shared, as this kernel does not let
 * the next id be chosen (/proc/sys/kernel/ns_last_pid). */
int shared_namespace_make(
	const struct shared_namespace_plan *plan, struct shared_namespace *ns, struct err *e);

/* The one that another supervisor has made: @plan and @first are what it says of it. */
int shared_namespace_open(const struct shared_namespace_plan *plan,
	const struct proc_identity *first, struct shared_namespace *ns, struct err *e);

/* In a process without threads: its children, but not itself, are in the pid namespace then. -1 with errno. */
int shared_namespace_enter(const struct shared_namespace *ns);

/* We make no program in it any more. */
void shared_namespace_leave(struct shared_namespace *ns);

#endif
