/* What a program can see of itself stays as it was: descriptors, limits, break, environment,
 * signal mask, its own memory and threads' storage. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "t/split/setup.h"

extern char **environ;

/* Descriptors below the soft limit, as a sum. */
static long descriptors(void)
{
	struct rlimit limit;
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;
	long sum = 0;

	getrlimit(RLIMIT_NOFILE, &limit);
	while ((e = readdir(d)))
		if (atol(e->d_name) < (long)limit.rlim_cur / 2 && atoi(e->d_name) != dirfd(d))
			sum += atol(e->d_name);
	closedir(d);
	return sum;
}

static unsigned long environment(void)
{
	unsigned long sum = (unsigned long)environ;

	for (char **e = environ; *e; e++)
		for (char *c = *e; *c; c++)
			sum = sum * 31 + *c;
	return sum;
}

int main(void)
{
	struct rlimit limit_before, limit_after;
	unsigned long environment_before = environment();
	sigset_t mask_before, mask_after;
	long before = descriptors();
	void *break_before;
	CUdeviceptr memory;

	setvbuf(stdout, malloc(4096), _IOFBF, 4096);
	break_before = sbrk(0);
	getrlimit(RLIMIT_NOFILE, &limit_before);
	sigemptyset(&mask_before);
	sigaddset(&mask_before, SIGUSR1);
	sigprocmask(SIG_SETMASK, &mask_before, NULL);
	errno = 77;

	set_up();
	OK(cuMemAlloc_v2(&memory, 1 << 20));
	OK(cuMemsetD32_v2(memory, 1, 1 << 18));

	sigprocmask(SIG_SETMASK, NULL, &mask_after);
	getrlimit(RLIMIT_NOFILE, &limit_after);
	CHECK(!memcmp(&mask_before, &mask_after, sizeof(long)));
	CHECK(!memcmp(&limit_before, &limit_after, sizeof(limit_before)));
	CHECK(descriptors() == before);
	CHECK(environment() == environment_before);
	if (is_split())
		CHECK(sbrk(0) == break_before);
	/* What the next open gets is what it would have got. */
	CHECK(open("/dev/null", O_RDONLY) == 3);
	printf("done\n");
	return wrong != 0;
}
