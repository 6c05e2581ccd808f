/* UNIX sockets with relative names, bound in a directory that the program has left since: with the
 * file where it was, under another name, and unlinked. Where the kernel tells which file it is, they
 * come back. */
#include <linux/sockios.h>
#include <stddef.h>

#include "sockets.h"

/* <linux/un.h>, which cannot be included beside <sys/un.h> */
#ifndef SIOCUNIXFILE
#define SIOCUNIXFILE (SIOCPROTOPRIVATE + 0)
#endif

enum { PLACED, MOVED, UNLINKED, DATAGRAMS, KINDS };

static const char *const names[KINDS] = {"placed", "moved", "unlinked", "datagrams"};
static int bound[KINDS], client[KINDS], server[KINDS];

void victim_hurt(void)
{
	MUST(!unlink("left/placed"));
}

static socklen_t set_name(struct sockaddr_un *a, const char *text)
{
	memset(a, 0, sizeof(*a));
	a->sun_family = AF_UNIX;
	snprintf(a->sun_path, sizeof(a->sun_path), "%s", text);
	return offsetof(struct sockaddr_un, sun_path) + strlen(text) + 1;
}

static int connect_to(int type, const char *text)
{
	int fd = socket(AF_UNIX, type, 0);
	struct sockaddr_un a;

	MUST(fd >= 0);
	if (connect(fd, (struct sockaddr *)&a, set_name(&a, text))) {
		close(fd);
		return -1;
	}
	return fd;
}

static void prepare(int i)
{
	int type = i == DATAGRAMS ? SOCK_DGRAM : SOCK_STREAM;
	struct sockaddr_un a;

	bound[i] = socket(AF_UNIX, type, 0);
	MUST(!bind(bound[i], (struct sockaddr *)&a, set_name(&a, names[i])));
	if (i != DATAGRAMS)
		MUST(!listen(bound[i], 3));
	MUST((client[i] = connect_to(type, names[i])) >= 0);
	server[i] = i == DATAGRAMS ? bound[i] : accept(bound[i], NULL, NULL);
	MUST(server[i] >= 0 && write(client[i], names[i], 4) == 4);
}

static void check(int i)
{
	struct sockaddr_un a = {0};
	socklen_t size = sizeof(a);

	sock_comes(server[i], names[i], 4, __LINE__);
	CHECK(write(client[i], "more", 4) == 4, "%s: %s", names[i], strerror(errno));
	COMES(server[i], "more");
	CHECK(!getsockname(bound[i], (struct sockaddr *)&a, &size) &&
			!strcmp(a.sun_path, names[i]),
		"%s is named %s", names[i], a.sun_path);
	size = sizeof(a);
	CHECK(!getpeername(client[i], (struct sockaddr *)&a, &size) &&
			!strcmp(a.sun_path, names[i]),
		"the peer of %s is named %s", names[i], a.sun_path);
}

/* By a name that leads there from where the program is now. */
static void check_new(int i, const char *name)
{
	int fd = connect_to(SOCK_STREAM, name);

	CHECK(fd >= 0 && write(fd, "new", 3) == 3, "%s: %s", name, strerror(errno));
	if (fd < 0)
		return;
	COMES(accept(bound[i], NULL, NULL), "new");
	close(fd);
}

int main(void)
{
	int fd;

	MUST(!mkdir("left", 0700) && !chdir("left"));
	for (int i = 0; i < KINDS; i++)
		prepare(i);
	fd = ioctl(bound[PLACED], SIOCUNIXFILE);
	if (fd < 0)
		victim_skip("the kernel does not tell files of sockets here");
	close(fd);
	MUST(!rename("moved", "away") && !unlink("unlinked") && !unlink("datagrams"));
	MUST(!chdir(".."));
	victim_ready();
	victim_wait();
	for (int i = 0; i < KINDS; i++)
		check(i);
	check_new(PLACED, "left/placed");
	check_new(MOVED, "left/away");
	CHECK(access("left/moved", F_OK) && access("left/unlinked", F_OK) &&
			access("left/datagrams", F_OK) && access("placed", F_OK),
		"a file is back");
	return victim_done();
}
