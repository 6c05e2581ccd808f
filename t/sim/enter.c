/*
 * enter.c - what each call into the driver passes through: hostile settings, checks of the
 * calling thread, and errors that a test has asked for.
 */
#include "t/sim/sim.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shared/address_windows.h"

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

/* All of the file that the environment variable @name names, as text; empty without. */
static void read_named(const char *name, char *text, size_t room)
{
	const char *path = getenv(name);
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	ssize_t n = fd < 0 ? 0 : read(fd, text, room - 1);

	text[n > 0 ? n : 0] = 0;
	if (fd >= 0)
		close(fd);
}

const char *sim_machine(const char *key, const char *standard)
{
	static __thread char text[512];
	size_t n = strlen(key);

	read_named("SIM_MACHINE_FILE", text, sizeof(text));
	for (char *rest = text, *line; (line = strsep(&rest, "\n"));)
		if (!strncmp(line, key, n) && line[n] == ' ')
			return line + n + 1;
	return standard;
}

/* The rule, from the environment or from a file that may come and change at any time; and how
 * many calls it has been about. */
static struct {
	pthread_mutex_t lock;
	char text[128];
	int calls;
} rule = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void find_rule(void)
{
	char text[sizeof(rule.text)];

	if (getenv("SIM_FAIL"))
		snprintf(text, sizeof(text), "%s", getenv("SIM_FAIL"));
	else
		read_named("SIM_FAIL_FILE", text, sizeof(text));
	if (strcmp(text, rule.text)) {
		strcpy(rule.text, text);
		rule.calls = 0;
	}
}

/* FUNCTION:N:RESULT; a negative result is a signal that ends the process. */
static int injected(const char *function)
{
	char name[100];
	int at, result = 0;

	if (!getenv("SIM_FAIL") && !getenv("SIM_FAIL_FILE"))
		return 0;
	pthread_mutex_lock(&rule.lock);
	find_rule();
	if (sscanf(rule.text, "%99[^:]:%d:%d", name, &at, &result) != 3 ||
		(strcmp(name, "*") && strcmp(name, function)) || ++rule.calls != at)
		result = 0;
	pthread_mutex_unlock(&rule.lock);
	if (result < 0)
		kill(getpid(), -result);
	return result;
}

static volatile int is_shut_down;

static void shut_down(void)
{
	is_shut_down = 1;
}

void sim_shut_down_at_exit(void)
{
	static int registered;

	if (!__atomic_exchange_n(&registered, 1, __ATOMIC_ACQ_REL))
		atexit(shut_down);
}

int sim_enter(const char *function)
{
	check_thread(function);
	if (is_shut_down)
		return SIM_DEINITIALIZED;
	return injected(function);
}
