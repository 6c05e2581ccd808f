/*
 * checkpoint_part.c - each stage is a line to the coordinator and the wait for its answer; and
 * the link that decides whether members end.
 */
#include "supervisor/job/checkpoint_part.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "ckpt/members.h"
#include "lib/util.h"

static int coordinator_lost(struct err *e)
{
	return err_set(e, 0,
		"the process that coordinates the checkpoint of the job has ended, or has "
		"given the checkpoint up and says why");
}

static int coordinator_silent(struct err *e)
{
	return err_set(e, 0,
		"nothing was heard for %d seconds of the process that coordinates the "
		"checkpoint of the job",
		PART_SILENCE_MS / 1000);
}

int part_hear(const struct part *p, char *line, size_t size, struct err *e)
{
	struct pollfd fd = {.fd = p->fd, .events = POLLIN};
	size_t length = 0;

	while (length + 1 < size) {
		int r = poll(&fd, 1, PART_SILENCE_MS);
		ssize_t n = r > 0 ? recv(p->fd, line + length, 1, MSG_DONTWAIT) : 0;

		if ((r < 0 && errno == EINTR) || (n < 0 && (errno == EINTR || errno == EAGAIN)))
			continue;
		if (!r)
			return coordinator_silent(e);
		if (n <= 0)
			return coordinator_lost(e);
		if (line[length] == '\n') {
			line[length] = 0;
			return 0;
		}
		length++;
	}
	line[length] = 0;
	return err_set(e, 0, "'%s...' was not understood", line);
}

/* They may be more than the socket's buffer holds. */
int part_say(const struct part *p, const char *lines, size_t size, struct err *e)
{
	struct pollfd fd = {.fd = p->fd, .events = POLLOUT};

	while (size) {
		ssize_t n = send(p->fd, lines, size, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EAGAIN && !poll(&fd, 1, PART_SILENCE_MS))
			return coordinator_silent(e);
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return coordinator_lost(e);
		if (n > 0)
			lines += n, size -= n;
	}
	return 0;
}

static int await_go(const struct part *p, struct err *e)
{
	char line[64];

	do {
		if (part_hear(p, line, sizeof(line), e))
			return -1;
	} while (!strcmp(line, PART_WAIT));
	return strcmp(line, PART_GO) ? err_set(e, 0, "'%s' was not understood", line) : 0;
}

int part_reached(struct part *p, const char *stage, struct err *e)
{
	cleanup_free char *line = xasprintf("%s\n", stage);

	return part_say(p, line, strlen(line), e) || await_go(p, e) ? -1 : 0;
}

static int file_exists(const char *path)
{
	return access(path, F_OK) == 0;
}

int part_stored(struct part *p, const uint8_t id[16], const uint8_t job_id[16], struct err *e)
{
	cleanup_free char *line = NULL;
	char own[MEMBERS_ID_TEXT], job[MEMBERS_ID_TEXT];

	members_id_text(own, id);
	members_id_text(job, job_id);
	line = xasprintf(PART_STORED " %s %s", own, job);
	return part_reached(p, line, e) && !file_exists(p->whole) ? -1 : 0;
}

int part_decide(const char *whole, const char *outcome, struct err *e)
{
	cleanup_free char *name = xasprintf("%s/" PART_OUTCOME, whole);
	cleanup_free char *other = NULL;
	cleanup_fd int dir = open(whole, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	/* The name can be made once, on file systems of several machines, too. */
	if (symlink(outcome, name) && errno != EEXIST)
		return err_set(e, errno, "cannot create %s", name);
	other = read_link(name, e);
	if (!other || dir < 0 || fsync(dir))
		return err_set(e, errno, "cannot write %s", name);
	if (!strcmp(other, outcome))
		return 0;
	return err_set(e, 0,
		"a member that lost the connection to its coordinator has decided that all "
		"programs of the job are %s",
		other);
}

int part_tried(struct part *p, struct err *e)
{
	if (!part_reached(p, PART_TRIED, e))
		return 0;
	/* When we are too late to continue, the others have ended, or will. */
	return part_decide(p->whole, PART_CONTINUED, NULL) &&
			       !part_decide(p->whole, PART_ENDED, NULL)
		       ? 0
		       : -1;
}
