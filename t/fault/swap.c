/*
 * swap.c - a library to be preloaded into trecr's own processes, which plays another user: behind
 * each bind(2) to the socket file TRECR_SWAP it puts a symbolic link to TRECR_SWAP_FOR there.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int bind(int fd, const struct sockaddr *address, socklen_t size)
{
	int (*real)(int, const struct sockaddr *, socklen_t) = dlsym(RTLD_NEXT, "bind");
	const char *path = getenv("TRECR_SWAP"), *target = getenv("TRECR_SWAP_FOR");
	const struct sockaddr_un *name = (const struct sockaddr_un *)address;
	int r = real(fd, address, size);

	if (r || !path || !target || address->sa_family != AF_UNIX ||
		strcmp(name->sun_path, path))
		return r;
	if (unlink(path) || symlink(target, path))
		abort();
	return 0;
}
