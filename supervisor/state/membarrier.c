/*
 * membarrier.c - asked for by calls in the process (where the kernel has no list of
 * registrations, by barriers, which fail without one), and planned for the new one.
 */
#include "supervisor/state/membarrier.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

/* <linux/membarrier.h>, of kernels up to 6.3: 1 << n */
enum {
	PRIVATE_EXPEDITED = 1 << 3,
	REGISTER_PRIVATE_EXPEDITED = 1 << 4,
	SYNC_CORE = 1 << 5,
	REGISTER_SYNC_CORE = 1 << 6,
	RSEQ = 1 << 7,
	REGISTER_RSEQ = 1 << 8,
	GET_REGISTRATIONS = 1 << 9,
};

/* A kernel that does not list registrations refuses a barrier that was not registered for; a
 * barrier that it allows does no harm. Nothing shows the global registration. */
static int try_out(struct remote *r, uint32_t *registrations, struct err *e)
{
	static const struct {
		int command, registration;
	} tries[] = {
		{PRIVATE_EXPEDITED, REGISTER_PRIVATE_EXPEDITED},
		{SYNC_CORE, REGISTER_SYNC_CORE},
		{RSEQ, REGISTER_RSEQ},
	};
	int64_t result;

	for (size_t i = 0; i < ARRAY_SIZE(tries); i++) {
		if (REMOTE_CALL(r, &result, e, SYS_membarrier, tries[i].command))
			return -1;
		if (!result)
			*registrations |= tries[i].registration;
	}
	return 0;
}

struct remote_query membarrier_question(void)
{
	return (struct remote_query){.nr = SYS_membarrier, .args = {GET_REGISTRATIONS}};
}

int membarrier_read(struct remote *r, const struct remote_query *asked, uint32_t *registrations,
	struct err *e)
{
	*registrations = 0;
	if (asked->result == -EINVAL)
		return try_out(r, registrations, e);
	/* ENOSYS: not there to be registered for. */
	if (asked->result > 0)
		*registrations = asked->result;
	return 0;
}

void membarrier_plan(struct batch_builder *b, uint32_t registrations)
{
	for (uint32_t left = registrations; left; left &= left - 1)
		BATCH_ADD(b, "register for memory barriers", SYS_membarrier, left & -left);
}
