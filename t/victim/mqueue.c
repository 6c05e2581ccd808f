/*
 * POSIX message queues: messages with their priorities and order, attributes, modes, one that
 * was unlinked, one shared with a child, non-blocking ones, an empty one, a message of no
 * bytes.
 */
#include <mqueue.h>

#include "tree.h"

static mqd_t named, unlinked, writer, full, empty;
static char name[32];

static mqd_t make_queue(const char *n, long max, long size, int flags)
{
	struct mq_attr attr = {.mq_maxmsg = max, .mq_msgsize = size};
	mqd_t q = mq_open(n, O_RDWR | O_CREAT | O_EXCL | flags, 0640, &attr);

	if (q < 0)
		victim_skip("no POSIX message queues");
	return q;
}

static void check_child(void)
{
	CHECK(!mq_send(unlinked, "child", 6, 9), "%s", strerror(errno));
}

static void receive(mqd_t q, const char *text, unsigned priority)
{
	char data[256] = "";
	unsigned p = 0;
	ssize_t n = mq_receive(q, data, sizeof(data), &p);

	CHECK(n == (ssize_t)strlen(text) + 1 && !strcmp(data, text) && p == priority,
		"%zd bytes \"%s\" of priority %u", n, data, p);
}

void victim_hurt(void)
{
	mq_send(named, "more", 5, 31);
}

int main(void)
{
	struct mq_attr attr;
	struct stat st;
	pid_t child;
	char other[256];

	snprintf(name, sizeof(name), "/trecr-victim-%d", getpid());
	snprintf(other, sizeof(other), "%s-u", name);
	named = make_queue(name, 5, 100, 0);
	MUST(!mq_send(named, "low 1", 6, 1) && !mq_send(named, "high 1", 7, 20) &&
		!mq_send(named, "low 2", 6, 1) && !mq_send(named, "high 2", 7, 20));
	writer = mq_open(name, O_WRONLY | O_NONBLOCK);
	unlinked = make_queue(other, 10, 256, 0);
	MUST(writer >= 0 && !mq_unlink(other) && !mq_send(unlinked, "", 1, 0) &&
		!mq_send(unlinked, "", 0, 0));
	full = make_queue(other, 1, 8, O_NONBLOCK);
	MUST(!mq_unlink(other) && !mq_send(full, "full", 5, 0));
	MUST(geteuid() || !fchown(full, 12, 13));
	empty = make_queue(other, 4, 8, O_NONBLOCK);
	MUST(!mq_unlink(other));
	child = tree_child(NULL, check_child);
	tree_await(1);
	victim_ready();
	victim_wait();
	CHECK(!mq_getattr(named, &attr) && attr.mq_maxmsg == 5 && attr.mq_msgsize == 100 &&
			attr.mq_curmsgs == 4,
		"%ld messages", attr.mq_curmsgs);
	CHECK(!fstat(named, &st) && (st.st_mode & 0777) == 0640 && st.st_nlink == 1, "mode %o",
		st.st_mode);
	CHECK(!mq_send(writer, "last", 5, 0) && mq_send(writer, "x", 2, 0) < 0 &&
			errno == EAGAIN,
		"%s", strerror(errno));
	for (int i = 1; i < 3; i++)
		receive(named, i == 1 ? "high 1" : "high 2", 20);
	for (int i = 1; i < 3; i++)
		receive(named, i == 1 ? "low 1" : "low 2", 1);
	receive(named, "last", 0);
	tree_finish(1);
	tree_reap(child, 0);
	receive(unlinked, "child", 9);
	receive(unlinked, "", 0);
	CHECK(mq_receive(unlinked, other, 256, NULL) == 0, "the message of no bytes is gone");
	CHECK(mq_receive(empty, other, 8, NULL) < 0 && errno == EAGAIN,
		"what was empty is not");
	CHECK(!fstat(unlinked, &st) && !st.st_nlink && (st.st_mode & 0777) == 0640,
		"it has a name again, or mode %o", st.st_mode);
	CHECK(!fstat(full, &st) && (geteuid() || (st.st_uid == 12 && st.st_gid == 13)),
		"it belongs to %u, %u", st.st_uid, st.st_gid);
	CHECK(mq_send(full, "x", 2, 0) < 0 && errno == EAGAIN, "%s", strerror(errno));
	receive(full, "full", 0);
	CHECK(!mq_unlink(name), "%s", strerror(errno));
	return victim_done();
}
