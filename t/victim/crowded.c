/* crowded PAIRS: the table of descriptors nearly full, half of it pipes and half sockets; a
 * child has them at other numbers. How many bytes wait in each tells which it is. */
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "victim.h"

#define PAIRS_MAX 4096

static int ends[2 * PAIRS_MAX], count;

void victim_hurt(void)
{
	MUST(dup2(ends[0], ends[count - 1]) >= 0);
}

static void fill(int from, int bytes)
{
	static char data[2 * PAIRS_MAX];

	MUST(write(from, data, bytes) == bytes);
}

static void make_ends(int i)
{
	int *pair = &ends[2 * i];

	if (i % 2) {
		MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
		fill(pair[0], 2 * i + 2);
		fill(pair[1], 2 * i + 1);
	} else {
		MUST(!pipe(pair));
		fill(pair[1], 2 * i + 1);
	}
}

/* What is to be read from end @i, or in a pipe is there for both of its ends. */
static int bytes_of(int i)
{
	return i / 2 % 2 ? i + 1 : (i | 1);
}

static int access_of(int i)
{
	return i / 2 % 2 ? O_RDWR : i % 2 ? O_WRONLY : O_RDONLY;
}

/* In order, or the other way round. */
static void check_all(bool reversed)
{
	for (int i = 0; i < count; i++) {
		int fd = reversed ? ends[count - 1 - i] : ends[i], bytes = -1;

		CHECK(!ioctl(fd, FIONREAD, &bytes) && bytes == bytes_of(i) &&
				(fcntl(fd, F_GETFL) & O_ACCMODE) == access_of(i),
			"%s: descriptor %d is another, with %d bytes",
			reversed ? "child" : "parent", fd, bytes);
	}
}

static void reverse(void)
{
	for (int i = 0; i < count / 2; i++) {
		int other = dup(ends[i]);

		MUST(other >= 0 && dup2(ends[count - 1 - i], ends[i]) >= 0 &&
			dup2(other, ends[count - 1 - i]) >= 0 && !close(other));
	}
}

static int child(int go)
{
	char byte;

	reverse();
	fill(go, 1);
	MUST(read(go, &byte, 1) == 1);
	check_all(true);
	return victim_failures != 0;
}

/* Not one number is left, and the last is of a file that is opened late in a restart. */
static int fill_up(void)
{
	int last = open("/proc/self/status", O_RDONLY);
	struct rlimit limit;

	MUST(last >= 0 && !getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = last + 1;
	MUST(!setrlimit(RLIMIT_NOFILE, &limit) && open("/dev/null", O_RDONLY) < 0);
	return last;
}

int main(int argc, char **argv)
{
	int pairs = argc > 1 ? atoi(argv[1]) : 40, go[2], status = -1, last;
	char byte;
	pid_t pid;

	MUST(pairs > 0 && pairs <= PAIRS_MAX && !socketpair(AF_UNIX, SOCK_STREAM, 0, go));
	for (int i = 0; i < pairs; i++)
		make_ends(i);
	count = 2 * pairs;
	pid = fork();
	MUST(pid >= 0);
	if (!pid)
		_exit(child(go[1]));
	MUST(read(go[0], &byte, 1) == 1);
	last = fill_up();
	victim_ready();
	victim_wait();
	CHECK(pread(last, &byte, 1, 0) == 1 && byte == 'N', "/proc/self/status is another");
	check_all(false);
	fill(go[0], 1);
	CHECK(waitpid(pid, &status, 0) == pid && !status, "the child found something wrong");
	return victim_done();
}
