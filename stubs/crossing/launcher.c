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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "shared/launcher_variables.h"
#include "shared/records.h"
#include "stubs/crossing/internal.h"

#define PATIENCE_S 10

/* Another user's would have us load its library. */
static int is_own(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) &&
	       (peer.uid == geteuid() || !peer.uid);
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
		!connect(fd, (struct sockaddr *)&a, sizeof(a)) && is_own(fd))
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

static int ask(const char *name)
{
	static const char question[] = "launcher\n";
	static char answer[2 * sizeof(struct records_launcher)];
	int fd = connect_to(name), failed;

	if (fd < 0)
		return -1;
	failed = send(fd, question, strlen(question), MSG_NOSIGNAL) < 0;
	if (!failed)
		hear_answer(fd, answer, sizeof(answer));
	close(fd);
	return failed ? -1 : take_answer((struct records_launcher *)RECORDS_LAUNCHER, answer);
}

static int ask_all(const char *folder)
{
	DIR *dir = opendir(folder);
	struct dirent *d;
	int r = -1;

	while (r && dir && (d = readdir(dir))) {
		char name[sizeof(((struct sockaddr_un *)0)->sun_path)];
		int n = snprintf(name, sizeof(name), "%s/%s", folder, d->d_name);

		if (*d->d_name != '.' && n > 0 && (size_t)n < sizeof(name))
			r = ask(name);
	}
	if (dir)
		closedir(dir);
	return r;
}

HIDDEN void launcher_ask(void)
{
	const struct records_launcher *l = (const struct records_launcher *)RECORDS_LAUNCHER;
	const char *name = getenv(SUPERVISOR_VARIABLE);
	char folder[sizeof(((struct sockaddr_un *)0)->sun_path)], *slash;

	if (!name || l->given || strlen(name) >= sizeof(folder) || !ask(name))
		return;
	memcpy(folder, name, strlen(name) + 1);
	slash = strrchr(folder, '/');
	if (!slash)
		return;
	*slash = 0;
	(void)ask_all(folder); /* none: then the environment is all there is */
}
