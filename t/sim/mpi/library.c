/* The library's beginning and end, its thread, its handlers of signals, and chance. */
#include "library.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

int sim_rank, sim_size = 1;
bool sim_in_thread;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_t thread, first;
static volatile bool ending;
static int level, initialised, finalized;
static uint64_t seed;

/* ---- chance and time ---- */

unsigned sim_chance(unsigned n)
{
	seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
	return (seed >> 11) % n;
}

uint64_t sim_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

uint64_t sim_later(void)
{
	switch (sim_chance(8)) {
	case 0:
		return sim_now() + sim_chance(3000000);
	case 1:
	case 2:
		return sim_now() + sim_chance(50000);
	}
	return 0;
}

bool sim_seen(uint64_t since)
{
	return sim_now() >= since && sim_chance(4);
}

void sim_fatal(const char *format, ...)
{
	va_list list;

	fprintf(stderr, "libmpi (simulated), rank %d: ", sim_rank);
	va_start(list, format);
	vfprintf(stderr, format, list);
	va_end(list);
	fputc('\n', stderr);
	fflush(NULL);
	_exit(76);
}

/* ---- the lock ---- */

void sim_lock(void)
{
	pthread_mutex_lock(&lock);
	if (!initialised || finalized)
		sim_fatal("a function is called before MPI_Init or behind MPI_Finalize");
}

void sim_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

void sim_pause(void)
{
	const struct timespec nap = {.tv_nsec = sim_chance(20000)};

	pthread_mutex_unlock(&lock);
	if (sim_chance(4))
		sched_yield();
	else
		nanosleep(&nap, NULL);
	pthread_mutex_lock(&lock);
	sim_progress();
}

static void *make_progress(void *unused)
{
	(void)unused;
	while (!ending) {
		struct timespec nap;

		pthread_mutex_lock(&lock);
		nap = (struct timespec){.tv_nsec = sim_chance(2000000)};
		sim_in_thread = true;
		sim_progress();
		sim_in_thread = false;
		pthread_mutex_unlock(&lock);
		nanosleep(&nap, NULL);
	}
	return NULL;
}

/* ---- beginning and end ---- */

/* None of them is to come to it while the library is not the program's own. */
static void caught(int number)
{
	sim_fatal("signal %d has come to the library's handler", number);
}

static void install_handlers(void)
{
	static const int signals[] = {
		SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGHUP, SIGUSR1, SIGUSR2};

	for (unsigned i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		signal(signals[i], caught);
}

static int number_of(const char *variable, int otherwise)
{
	const char *value = getenv(variable);

	return value ? atoi(value) : otherwise;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	(void)argc, (void)argv;
	sim_rank = number_of("PMI_RANK", 0);
	sim_size = number_of("PMI_SIZE", 1);
	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		seed = 0;
	seed |= 1;
	if (sim_size > RANKS_MAX || sim_rank >= sim_size ||
		wire_open(getenv("PMI_SIM_FILE")) < 0)
		sim_fatal("cannot be initialised as one of %d ranks", sim_size);
	comm_make_predefined();
	install_handlers();
	first = pthread_self();
	level = *provided = required;
	initialised = 1;
	if (pthread_create(&thread, NULL, make_progress, NULL))
		sim_fatal("it has no thread");
	sim_lock();
	collective_barrier(comm_find(MPI_COMM_WORLD));
	sim_unlock();
	return 0;
}

int MPI_Init(int *argc, char ***argv)
{
	int provided;

	return MPI_Init_thread(argc, argv, MPI_THREAD_SINGLE, &provided);
}

int MPI_Finalize(void)
{
	sim_lock();
	collective_barrier(comm_find(MPI_COMM_WORLD));
	while (!wire_is_empty())
		sim_pause();
	ending = true;
	sim_unlock();
	pthread_join(thread, NULL);
	wire_close();
	finalized = 1;
	return 0;
}

int MPI_Abort(MPI_Comm comm, int status)
{
	(void)comm;
	fflush(NULL);
	_exit(status);
}

int MPI_Query_thread(int *provided)
{
	*provided = level;
	return 0;
}

int MPI_Is_thread_main(int *flag)
{
	*flag = pthread_equal(first, pthread_self());
	return 0;
}

int MPI_Error_class(int code, int *class_of_it)
{
	*class_of_it = code & 0x7f;
	return 0;
}
