/*
 * landlock_refuse.c - the thread tries kcmp(2) with the supervisor: where an unrestricted one
 * may, EPERM tells.
 */
#include "supervisor/state/landlock_refuse.h"

#include <errno.h>
#include <linux/kcmp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/procfs.h"
#include "lib/util.h"

/* <linux/landlock.h> and <asm/unistd.h> of kernel 5.13 */
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#endif
#define CREATE_RULESET_VERSION 1u

#define CAP_SYS_ADMIN_BIT 21

/* A thread can restrict itself when it can gain no privileges, or has all of them. */
static bool may_be_restricted(const char *status)
{
	return status_number(status, "NoNewPrivs", 10) ||
	       status_number(status, "CapEff", 16) >> CAP_SYS_ADMIN_BIT & 1;
}

/* "1000 1000 1000 1000": the same user in all roles, or not. */
static bool same_ids(const char *mine, const char *its, const char *key)
{
	const char *a = status_value(mine, key), *b = status_value(its, key);
	size_t n = strcspn(a, "\n");

	return n && n == strcspn(b, "\n") && !memcmp(a, b, n);
}

/* Whether an unrestricted thread could look at us (ptrace_may_access() and
 * cap_ptrace_access_check() of the kernel). */
static bool could_look(const char *mine, const char *its)
{
	return same_ids(mine, its, "Uid") && same_ids(mine, its, "Gid") &&
	       !(status_number(mine, "CapPrm", 16) & ~status_number(its, "CapPrm", 16)) &&
	       status_last_number(mine, "NSpid") == (uint64_t)getpid();
}

/* Containers may forbid the call that tells (seccomp), to the program as to us. */
static bool may_ask(void)
{
	return !syscall(SYS_kcmp, getpid(), getpid(), KCMP_VM, 0L, 0L);
}

bool landlock_is_possible(const struct thread *t, const char *own_status)
{
	return may_be_restricted(t->status) && could_look(own_status, t->status) && may_ask() &&
	       syscall(SYS_landlock_create_ruleset, NULL, 0L, CREATE_RULESET_VERSION) > 0;
}

struct remote_query *landlock_ask(const struct thread *t, struct remote_query *q)
{
	q->nr = SYS_kcmp;
	q->args[0] = t->vtid;
	q->args[1] = getpid();
	q->args[2] = KCMP_VM;
	return q;
}

int landlock_refuse(int64_t answer, struct err *e)
{
	if (answer != -EPERM)
		return 0;
	return err_set(e, 0,
		"it has been restricted by a security module (Landlock), which is not "
		"supported");
}
