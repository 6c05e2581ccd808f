/*
 * What a rank tells rank 0 of the ids that its program is to have (supervisor/job/restart_namespaces.c) arrives, however
 * many they are and however late rank 0 reads; and a rank that tells it hears when rank 0 ends.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervisor/job/restart_barrier_private.h"
#include "supervisor/job/restart_namespaces.h"
#include "t/unit/tap.h"

#define MANY  20000
#define FIRST 300
#define LIMIT 300 /* s */

static void serve(struct supervisor *s, int ms, control_handler *handler, void *arg)
{
	sleep_ns(ms * 1000000ull);
}

struct rank {
	struct job job;
	struct supervisor s;
	struct restart_barrier g;
};

static void begin(struct rank *r, int rank, int fd)
{
	r->s = (struct supervisor)SUPERVISOR_INIT("");
	r->job = (struct job){.dir = ".", .rank = rank, .size = 2};
	r->s.job = &r->job;
	r->g = (struct restart_barrier){.s = &r->s, .serve = serve};
	r->g.wires = xcalloc(2, sizeof(*r->g.wires));
	r->g.back = xcalloc(2, sizeof(*r->g.back));
	r->g.wires[0].fd = r->g.wires[1].fd = -1;
	r->g.wires[!rank].fd = fd;
	restart_namespaces_init(&r->g);
}

static void end(struct rank *r)
{
	for (int i = 0; i < 2; i++)
		wire_close(&r->g.wires[i]);
	free(r->g.wires);
	free(r->g.back);
	restart_namespaces_free(&r->g);
}

/* No two follow each other, so that each is told by itself. */
static int share(struct rank *r, int count, struct err *e)
{
	const struct shared_namespace *shared;
	cleanup_buf struct buf ids = {0};
	int failed;

	for (pid_t i = 0; i < count; i++)
		buf_push(&ids, pid_t, &(pid_t){FIRST + 2 * i});
	failed = restart_barrier_share(
		&r->g, &(struct namespace_wish){.apart = true, .ids = &ids}, &shared, e);
	return failed || shared ? -1 : 0;
}

/* Rank 1, in a process of its own, which exits with 0 when it is by itself, and else with 1 and says why by @said. */
static pid_t start_rank_1(int fds[2], int said)
{
	struct err e = ERR_INIT;
	pid_t pid = fork();
	struct rank r;

	if (pid)
		return pid;
	close(fds[0]);
	alarm(LIMIT);
	begin(&r, 1, fds[1]);
	if (!share(&r, MANY, &e))
		_exit(0);
	(void)!write(said, e.msg, strlen(e.msg) + 1);
	_exit(1);
}

/* Much less than @MANY ids fit the connection. */
static void connect_ranks(int fds[2])
{
	int little = 4608;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) ||
		setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &little, sizeof(little)))
		abort();
}

static bool has_all(const struct buf *ids)
{
	bool all = buf_count(ids, pid_t) == MANY;

	for (pid_t i = 0; all && i < MANY; i++)
		all = *buf_at(ids, pid_t, i) == FIRST + 2 * i;
	return all;
}

static void check_many(void)
{
	struct err e = ERR_INIT;
	int fds[2], status, failed;
	struct rank r;
	pid_t pid;

	connect_ranks(fds);
	pid = start_rank_1(fds, STDERR_FILENO);
	close(fds[1]);
	begin(&r, 0, fds[0]);
	failed = share(&r, 1, &e);
	if (!ok(!failed && has_all(&r.g.wishes[1].ids), "rank 0 hears of %d ids", MANY))
		diag("%zu: %s", buf_count(&r.g.wishes[1].ids, pid_t), e.msg);
	end(&r);
	ok(waitpid(pid, &status, 0) == pid && !status, "and the rank has its answer");
}

/* Rank 0 reads nothing of what rank 1 says, says @word if any, and ends. */
static void check_end(const char *word, const char *want)
{
	char text[768] = "";
	int fds[2], said[2], status;
	pid_t pid;

	connect_ranks(fds);
	if (pipe(said))
		abort();
	pid = start_rank_1(fds, said[1]);
	close(said[1]);
	close(fds[1]);
	if (word && write(fds[0], word, strlen(word)) < 0)
		abort();
	if (!word)
		close(fds[0]);
	(void)!read(said[0], text, sizeof(text) - 1);
	ok(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 1,
		"a rank that tells its ids ends with rank 0");
	says(text, want, "and knows why");
	if (word)
		close(fds[0]);
	close(said[0]);
}

static void check_count(void)
{
	struct err e = ERR_INIT;
	static const char lines[] = "ids 300-301\nwish a 0 1 0 0 32768 0 0 3\n";
	struct rank r;
	int fds[2];

	connect_ranks(fds);
	if (write(fds[1], lines, strlen(lines)) < 0)
		abort();
	begin(&r, 0, fds[0]);
	ok(share(&r, 1, &e) < 0, "ids that are fewer than the rank says are not taken for all");
	says(e.msg, "rank 1: what it said was not understood", "and it is said");
	end(&r);
	close(fds[1]);
}

int main(void)
{
	alarm(LIMIT);
	(void)signal(SIGPIPE, SIG_IGN);
	check_many();
	check_end(NULL, "rank 0 has ended, or cannot be reached any more");
	check_end("end\n", "end");
	check_count();
	return done_testing();
}
