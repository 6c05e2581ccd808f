/*
 * launcher.c - a program that was executed by one that has come back from an image has the environment of that one, with
 * variables of a launcher that is gone. So, before its lower half is started, it asks its supervisor which ones there are
 * instead (supervisor/control/control_protocol.h, "launcher"), and has them as if the restart had left them for it.
 *
 * Its environment says where the first supervisor was. One of a restart has another socket in the same folder: all that
 * are there are asked, of which only the own one has an answer.
 */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "shared/launcher_variables.h"
#include "shared/raw.h"
#include "shared/records.h"
#include "stubs/crossing/internal.h"

#define PATIENCE_S        10
#define FIRST_PATIENCE_MS 500 /* then the others are asked, too */

/* Another user's would have us load its library. */
static int is_own(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) &&
	       (peer.uid == geteuid() || !peer.uid);
}

/* A signal interrupts it only while it waits for room with the other one, and then nothing has been done. */
static int connect_whole(int fd, const struct sockaddr_un *a)
{
	int r;

	do
		r = connect(fd, (const struct sockaddr *)a, sizeof(*a));
	while (r < 0 && errno == EINTR);
	return r;
}

static int connect_to(const char *name)
{
	const struct timeval patience = {.tv_sec = PATIENCE_S};
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd;

	if (strlen(name) >= sizeof(a.sun_path))
		return -1;
	memcpy(a.sun_path, name, strlen(name)); /* the rest is zero */
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	if (!setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) &&
		!setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) &&
		!connect_whole(fd, &a) && is_own(fd))
		return fd;
	close(fd);
	return -1;
}

/* The supervisor closes the connection behind it. Ended by 0; what is longer is not understood. */
static void hear_answer(int fd, char *answer, size_t room)
{
	size_t used = 0;
	ssize_t n;

	do {
		n = recv(fd, answer + used, room - 1 - used, 0);
		if (n > 0)
			used += n;
	} while (used < room - 1 && (n > 0 || (n < 0 && errno == EINTR)));
	answer[used] = 0;
}

/* ---- what it says ---- */

static void unescape(char *value)
{
	char *to = value;

	for (; *value; value++)
		if (*value == '\\' && value[1])
			*to++ = *++value == 'n' ? '\n' : *value;
		else
			*to++ = *value;
	*to = 0;
}

/* One behind the other; there has to be room for the end of all. */
static int add_text(char *to, size_t room, size_t *used, const char *text)
{
	size_t size = strlen(text) + 1;

	if (size >= room - *used)
		return -1;
	memcpy(to + *used, text, size);
	*used += size;
	return 0;
}

/* 1: that is all. */
static int take_line(struct records_launcher *l, size_t *names, char *line)
{
	size_t used = l->size;
	char *value = strchr(line, ' ');

	if (!value)
		return -1;
	*value++ = 0;
	unescape(value);
	if (!strcmp(line, "ok"))
		return 1;
	l->given = 1;
	if (!strcmp(line, "mpi")) {
		l->mpi = strtoul(value, NULL, 10);
		return 0;
	}
	if (!strcmp(line, "library"))
		return add_text(l->names, sizeof(l->names), names, value);
	if (strcmp(line, "variable") || add_text(l->text, sizeof(l->text), &used, value))
		return -1;
	l->size = used;
	return 0;
}

/* 0: it was an answer. */
static int take_answer(struct records_launcher *l, char *answer)
{
	size_t names = 0;
	char *line, *rest = answer;
	int r = 0;

	while (!r && (line = strsep(&rest, "\n")) && rest)
		r = take_line(l, &names, line);
	if (r == 1)
		return 0;
	memset(l, 0, sizeof(*l));
	return -1;
}

/* ---- all are asked, as one that is stopped does not answer ---- */

struct asked {
	struct pollfd *sockets; /* fd -1: it has no answer */
	size_t count;
};

static void ask(struct asked *all, const char *name)
{
	static const char question[] = "launcher\n";
	int fd = connect_to(name);
	struct pollfd *more;

	if (fd < 0)
		return;
	more = realloc(all->sockets, (all->count + 1) * sizeof(*more));
	if (more)
		all->sockets = more;
	if (!more || send(fd, question, strlen(question), MSG_NOSIGNAL) < 0) {
		close(fd);
		return;
	}
	more[all->count++] = (struct pollfd){.fd = fd, .events = POLLIN};
}

static void ask_others(struct asked *all, const char *folder, const char *but)
{
	DIR *dir = opendir(folder);
	struct dirent *d;

	while (dir && (d = readdir(dir))) {
		char name[sizeof(((struct sockaddr_un *)0)->sun_path)];
		int n = snprintf(name, sizeof(name), "%s/%s", folder, d->d_name);

		if (*d->d_name != '.' && n > 0 && (size_t)n < sizeof(name) &&
			strcmp(name, but) != 0)
			ask(all, name);
	}
	if (dir)
		closedir(dir);
}

/* 0: it was an answer. */
static int hear(struct pollfd *socket)
{
	static char answer[2 * sizeof(struct records_launcher)];

	hear_answer(socket->fd, answer, sizeof(answer));
	close(socket->fd);
	socket->fd = -1;
	return take_answer((struct records_launcher *)RECORDS_LAUNCHER, answer);
}

static int are_left(const struct asked *all)
{
	for (size_t i = 0; i < all->count; i++)
		if (all->sockets[i].fd >= 0)
			return 1;
	return 0;
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail */
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Until one has an answer, which is 0, or none is left, or for @patience_ms. */
static int hear_first(struct asked *all, int patience_ms)
{
	int64_t end = now_ms() + patience_ms, left;

	while (are_left(all) && (left = end - now_ms()) > 0) {
		if (poll(all->sockets, all->count, (int)left) < 0 && errno != EINTR)
			return -1;
		for (size_t i = 0; i < all->count; i++)
			if (all->sockets[i].fd >= 0 && all->sockets[i].revents &&
				!hear(&all->sockets[i]))
				return 0;
	}
	return -1;
}

static void forget(struct asked *all)
{
	for (size_t i = 0; i < all->count; i++)
		if (all->sockets[i].fd >= 0)
			close(all->sockets[i].fd);
	free(all->sockets);
}

/* Then the environment is all there is. */
static void tell_of_silence(void)
{
	if (getenv("PMI_RANK") || getenv("PMI_FD") || getenv("PMIX_RANK"))
		raw_complain("no supervisor says which launcher this rank has: if it has come "
			     "back from an image, it finds "
			     "that of its start");
}

HIDDEN void launcher_ask(void)
{
	const struct records_launcher *l = (const struct records_launcher *)RECORDS_LAUNCHER;
	const char *name = getenv(SUPERVISOR_VARIABLE);
	char folder[sizeof(((struct sockaddr_un *)0)->sun_path)], *slash;
	struct asked all = {NULL, 0};

	if (!name || l->given || strlen(name) >= sizeof(folder))
		return;
	memcpy(folder, name, strlen(name) + 1);
	slash = strrchr(folder, '/');
	ask(&all, name);
	if (hear_first(&all, FIRST_PATIENCE_MS) && slash) {
		*slash = 0;
		ask_others(&all, folder, name);
		if (hear_first(&all, PATIENCE_S * 1000))
			tell_of_silence();
	}
	forget(&all);
}
