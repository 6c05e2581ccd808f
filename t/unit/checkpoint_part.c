/*
 * What a member of a job says when a checkpoint of the job ends otherwise than by "go" (supervisor/job/checkpoint_part.c):
 * the reason, whatever it hears or does not hear of the coordinator.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/util.h"
#include "supervisor/job/checkpoint_part.h"
#include "t/unit/scratch.h"
#include "t/unit/tap.h"

#define LIMIT 60 /* s */

static struct part part;
static int coordinator;

static void connect_both(void)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
		abort();
	part.fd = fds[0];
	coordinator = fds[1];
}

static void hear(const char *said, const char *want, const char *name)
{
	struct err e = ERR_INIT;

	connect_both();
	if (write(coordinator, said, strlen(said)) != (ssize_t)strlen(said))
		abort();
	(void)shutdown(coordinator, SHUT_WR);
	ok(part_reached(&part, PART_FROZEN, &e) == -1, "%s: a failure", name);
	says(e.msg, want, "and why");
	close(coordinator);
	close(part.fd);
}

static void check_say(void)
{
	struct err e = ERR_INIT;

	connect_both();
	close(coordinator);
	ok(part_say(&part, "frozen\n", 7, &e) == -1, "nobody is there to tell: a failure");
	says(e.msg, "has ended, or has given the checkpoint up", "and why");
	close(part.fd);
}

static void check_go(void)
{
	struct err e = ERR_INIT;

	connect_both();
	if (write(coordinator, "wait\ngo\n", 8) != 8)
		abort();
	ok(!part_reached(&part, PART_FROZEN, &e), "all are as far");
	close(coordinator);
	close(part.fd);
}

/* The first who decides does so for all. */
static void check_decide(void)
{
	struct err e = ERR_INIT;

	ok(!part_decide(scratch_path, PART_CONTINUED, &e), "a member continues");
	ok(!part_decide(scratch_path, PART_CONTINUED, &e), "so does another one");
	ok(part_decide(scratch_path, PART_ENDED, &e) == -1, "nobody is ended then");
	says(e.msg, "has decided that all programs of the job are continued", "and why");
}

int main(void)
{
	alarm(LIMIT);
	(void)signal(SIGPIPE, SIG_IGN);
	scratch_make();
	check_go();
	hear("", "has ended, or has given the checkpoint up", "the connection ends");
	hear("wait\ng", "has ended, or has given the checkpoint up", "in the middle of a line");
	hear("stop\n", "'stop' was not understood", "a word that is none");
	hear("a line of more characters than any that a coordinator says to a member has\n",
		"a line of more characters than any that a coordinator says to a...' was not "
		"understood",
		"a line that is too long");
	check_say();
	check_decide();
	return done_testing();
}
