/*
 * namespace_groups.h - which ranks of a job that is restarted share a pid namespace: those of one node, if any of them
 * needs one, and if no two need one id, as ranks may that were on different nodes, or in namespaces of their own.
 */
#ifndef SUPERVISOR_JOB_NAMESPACE_GROUPS_H
#define SUPERVISOR_JOB_NAMESPACE_GROUPS_H

#include <stdbool.h>
#include <sys/types.h>

#include "lib/util.h"
#include "supervisor/start/shared_namespace.h"

struct rank_wish {
	char place[96]; /* machine, pid and user namespace; "": not known yet */
	bool needed, apart, whole, user; /* as of struct namespace_wish */
	uid_t uid;                       /* that it restarts as, */
	gid_t gid;                       /* all that a user namespace made for it has */
	pid_t id_limit;                  /* ids are below it there (/proc/sys/kernel/pid_max) */
	struct buf ids;                  /* pid_t: the lowest first, each once */
};

/* The group that a rank is in. */
struct namespace_group {
	int maker; /* the rank that makes the namespace; -1: this rank is by itself */
	struct shared_namespace_plan plan;
};

/* Fill in @groups of @count ranks. */
void namespace_groups(
	const struct rank_wish *wishes, int count, struct namespace_group *groups);

#endif
