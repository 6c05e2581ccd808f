/* Whole reads and writes end, also where nothing more is given or taken. */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/util.h"
#include "t/unit/tap.h"

static char data[4096];

/* /proc/PID/mem of a process that has ended: reads and writes of it return 0. */
static int memory_of_the_dead(void)
{
	char path[64];
	pid_t child = fork();
	int fd;

	if (!child) {
		pause();
		_exit(0);
	}
	snprintf(path, sizeof(path), "/proc/%d/mem", child);
	fd = open(path, O_RDWR | O_CLOEXEC);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return fd;
}

int main(void)
{
	int fd = memory_of_the_dead();
	uint64_t at = (uintptr_t)data;
	struct err e = ERR_INIT;

	/* A command that never ends is ended. */
	alarm(60);
	ok(fd >= 0 && pread_all(fd, data, sizeof(data), at, "its memory", &e),
		"memory of the dead is not read");
	says(e.msg, "cannot read its memory: it ends unexpectedly", "which is said");
	ok(pwrite_all(fd, data, sizeof(data), at, "its memory", &e), "nor written");
	says(e.msg, "cannot write its memory: no more bytes are accepted", "which is said");
	lseek(fd, at, SEEK_SET);
	ok(write_all(fd, data, sizeof(data), "its memory", &e), "nor from where it stands");
	says(e.msg, "cannot write its memory: no more bytes are accepted", "which is said");
	close(fd);
	return done_testing();
}
