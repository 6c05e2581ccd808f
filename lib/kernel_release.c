/*
 * kernel_release.c - read once: uname(2) tells a process of the personality UNAME26 another one.
 */
#include "lib/kernel_release.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/util.h"

static char release[65];

static void read_release(void)
{
	cleanup_fd int fd = open("/proc/sys/kernel/osrelease", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, release, sizeof(release) - 1);

	release[n < 0 ? 0 : n] = '\0';
	release[strcspn(release, "\n")] = '\0';
}

const char *kernel_release(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_release);
	return release;
}

bool release_is_at_least(const char *text, unsigned major, unsigned minor)
{
	unsigned long has_major, has_minor;
	const char *minor_text;
	char *end;

	has_major = strtoul(text, &end, 10);
	minor_text = end + 1;
	if (end == text || *end != '.')
		return true;
	has_minor = strtoul(minor_text, &end, 10);
	if (end == minor_text)
		return true;
	return has_major > major || (has_major == major && has_minor >= minor);
}

bool kernel_is_at_least(unsigned major, unsigned minor)
{
	return release_is_at_least(kernel_release(), major, minor);
}
