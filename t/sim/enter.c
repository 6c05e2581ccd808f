#include "t/sim/sim.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/windows.h"

static __thread uint64_t here;
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_key(void)
{
	pthread_key_create(&key, NULL);
}

void sim_hostile(const char *what, const char *function)
{
	char text[256];
	int n = snprintf(text, sizeof(text), "sim: %s: %s\n", function, what);

	(void)!write(2, text, n);
	_exit(86);
}

/* The FS base must be that of a thread of our libc, and the same at every call of the thread.
 * When this code lies in the window of a lower half, so must the FS base. */
static void check_thread(const char *function)
{
	uint64_t fs;

	__asm__ volatile("rdfsbase %0" : "=r"(fs));
	if ((uint64_t)pthread_self() != fs)
		sim_hostile("FS base is not a thread's", function);
	if (in_lower_window((uintptr_t)check_thread) != in_lower_window(fs))
		sim_hostile("called on the other half's FS base", function);
	pthread_once(&once, make_key);
	if (!pthread_getspecific(key))
		pthread_setspecific(key, &here);
	if (pthread_getspecific(key) != &here)
		sim_hostile("the thread's data is another thread's", function);
	here++;
}

/* From the environment, or from a file that may come at any time. */
static const char *find_rule(void)
{
	static char text[128];
	const char *path;
	ssize_t n = 0;
	int fd;

	if (*text || getenv("SIM_FAIL"))
		return *text ? text : getenv("SIM_FAIL");
	path = getenv("SIM_FAIL_FILE");
	fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd >= 0) {
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	return n > 0 ? text : "";
}

/* FUNCTION:N:RESULT */
static int injected(const char *function)
{
	static int calls;
	const char *rule = find_rule();
	size_t n = strlen(function);
	int at, result;

	if (strncmp(rule, function, n) || sscanf(rule + n, ":%d:%d", &at, &result) != 2)
		return 0;
	return __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) == at ? result : 0;
}

int sim_enter(const char *function)
{
	check_thread(function);
	return injected(function);
}
