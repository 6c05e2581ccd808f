/* A UNIX socket with a relative name, bound in a directory that the program has left since, but has open. */
#include <fcntl.h>

#include "sockets.h"

static int bound;

void victim_hurt(void)
{
	MUST(!unlink("left/placed"));
}

int main(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX, .sun_path = "placed"}, named = {0};
	int client = socket(AF_UNIX, SOCK_STREAM, 0), directory;
	socklen_t size = sizeof(named);

	bound = socket(AF_UNIX, SOCK_STREAM, 0);
	MUST(client >= 0 && bound >= 0 && !mkdir("left", 0700));
	directory = open("left", O_RDONLY | O_DIRECTORY);
	MUST(directory >= 0 && !fchdir(directory));
	MUST(!bind(bound, (struct sockaddr *)&a, sizeof(a)) && !listen(bound, 3));
	MUST(!chdir(".."));
	victim_ready();
	victim_wait();
	CHECK(!getsockname(bound, (struct sockaddr *)&named, &size) &&
			!strcmp(named.sun_path, "placed"),
		"it is named %s", named.sun_path);
	CHECK(access("placed", F_OK), "it is in the directory that the program is in");
	MUST(!fchdir(directory));
	CHECK(!connect(client, (struct sockaddr *)&a, sizeof(a)) &&
			write(client, "new", 3) == 3,
		"it cannot be reached by its name: %s", strerror(errno));
	if (!victim_failures)
		COMES(accept(bound, NULL, NULL), "new");
	return victim_done();
}
