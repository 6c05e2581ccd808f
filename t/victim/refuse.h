/*
 * refuse.h - for victims that hold something that a checkpoint refuses, by name: the program
 * must run on and find it as it was.
 *
 *	refuse_SUBJECT KIND
 *
 * Prints "descriptor N", "region ADDRESS", "process PID" or "nothing" (what the refusal has to
 * name), then is a victim like the others.
 */
#ifndef T_VICTIM_REFUSE_H
#define T_VICTIM_REFUSE_H

#include <sys/socket.h>

#include "victim.h"

/* What most kinds need: the descriptor to be named, another one, the region, the process. */
static int fd = -1;
__attribute__((unused)) static int other = -1;
static char *p;
static pid_t child;

static inline void need(bool ok, const char *what)
{
	if (!ok)
		victim_skip(what);
}

static inline void need_socket(int family, int type, int protocol)
{
	fd = socket(family, type, protocol);
	need(fd >= 0, "no such socket here");
}

struct kind {
	const char *name;
	void (*prepare)(void);
	void (*check)(void);
	char names; /* d: the descriptor, r: the region, c: the child, -: nothing */
};

void victim_hurt(void)
{
	victim_failures++;
}

static inline void nothing(void)
{
}

static inline int refuse_main(const struct kind *kinds, size_t count, const char *name)
{
	const struct kind *kind = NULL;

	for (size_t i = 0; i < count; i++)
		if (name && !strcmp(name, kinds[i].name))
			kind = &kinds[i];
	if (!kind)
		return 2;
	kind->prepare();
	if (kind->names == 'd')
		victim_say("descriptor %d", fd);
	else if (kind->names == 'r')
		victim_say("region %lx", (unsigned long)p);
	else if (kind->names == 'c')
		victim_say("process %d", child);
	else
		victim_say("nothing");
	victim_ready();
	victim_wait();
	if (fd >= 0)
		CHECK(fcntl(fd, F_GETFD) >= 0, "descriptor %d is gone", fd);
	kind->check();
	return victim_done();
}

#endif
