/*
 * The lower half again, in a process that has come back from an image. The supervisor has one
 * thread of the upper half run this while all others are stopped
 * (supervisor/split/lower_restore.c). That thread is in the middle of something else, so
 * nothing here may use the libc.
 */
#include "bringup/start.h"
#include "shared/raw.h"
#include "shared/records.h"
#include "stubs/crossing/internal.h"

static int restart_failed(const char *what, const char *detail)
{
	char *to = RECORDS->failure, *end = to + sizeof(RECORDS->failure) - 1;

	for (; *what && to < end; what++)
		*to++ = *what;
	for (; *detail && to < end; detail++)
		*to++ = *detail;
	*to = 0;
	return -1;
}

static int open_again(struct crossing_library *l, struct lower_table *table)
{
	uintptr_t start = l->lower.start;

	if (process_request(table, LOWER_LIBRARY, &l->lower, NULL) < 0)
		return restart_failed("cannot load the library: ", table->failure);
	if (l->fixed && l->lower.start != start)
		return restart_failed("is not at the address that it had: ", l->lower.soname);
	return 0;
}

/* In the order they were opened in, which decides where they are placed. */
static int open_libraries(struct crossing_library *newest, struct lower_table *table)
{
	if (!newest)
		return 0;
	if (open_libraries(newest->next, table) < 0)
		return -1;
	return open_again(newest, table);
}

static int attach_threads(struct process *p)
{
	for (struct crossing_thread *t = p->threads; t; t = t->next)
		if (thread_attach(t, p->table) < 0)
			return restart_failed(
				"the lower half has no thread to serve the restart", "");
	return 0;
}

static int restart_lower(void)
{
	struct process *p = process_get();
	const char *step = "";

	raw_zero(RECORDS_KEPT->fds, sizeof(RECORDS_KEPT->fds));
	if (process_start_lower(p, RECORDS_KEPT->fd_base, &step) < 0)
		return restart_failed("cannot bring the lower half up: ", step);
	if (open_libraries(process_libraries(), p->table) < 0 || attach_threads(p) < 0)
		return -1;
	for (struct crossing_library *l = process_libraries(); l; l = l->next)
		if (l->restarted && l->restarted(l) < 0)
			return -1;
	return 0;
}

HIDDEN void crossing_restart(void)
{
	RECORDS->result = restart_lower();
}
