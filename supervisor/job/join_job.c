/*
 * join_job.c - asks launcher_rank.c for the rank, opens a port where there are other machines,
 * and writes the member's file.
 */
#include "supervisor/job/join_job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/launcher_variables.h"
#include "supervisor/job/member_port.h"
#include "supervisor/job/member_files.h"
#include "supervisor/job/launcher_rank.h"
#include "supervisor/job/reach_member.h"
#include "supervisor/job/checkpoint_turns.h"

/* Not where all ranks are on this machine, as far as the launcher tells, or where there is no
 * network. *port may stay NULL. */
static int open_port(struct job_member *self, const char *interface, struct member_port **port,
	struct err *e)
{
	if (self->local == self->size)
		return 0;
	if (addresses_own(&self->addresses, interface, e))
		return -1;
	if (!self->addresses.count)
		return 0;
	*port = member_port_open(self->secret, interface, e);
	if (!*port)
		return -1;
	self->port = member_port_number(*port);
	return 0;
}

int job_join_supervisor(struct supervisor *s, const char *dir, const char *from, struct err *e)
{
	struct job_member self = {.keep = s->options.keep, .interval_s = s->options.interval_s};
	struct member_port *port = NULL;

	if (s->options.alone || !rank_of_launcher(&self.rank, &self.size))
		return 0;
	snprintf(self.from, sizeof(self.from), "%s", from ? from : "-");
	self.local = rank_local_size();
	wire_new_secret(self.secret);
	if (open_port(&self, s->options.interface, &port, e))
		return -1;
	s->job = job_join(dir, &self, reach_answers, e);
	if (!s->job)
		return -1;
	s->job->port = port;
	if (!self.rank)
		s->job->turns = turns_new();
	return 0;
}

int job_name_supervisor(const char *socket, struct err *e)
{
	return (socket ? setenv(SUPERVISOR_VARIABLE, socket, 1) : unsetenv(SUPERVISOR_VARIABLE))
		       ? err_set(e, errno, "cannot set " SUPERVISOR_VARIABLE)
		       : 0;
}
