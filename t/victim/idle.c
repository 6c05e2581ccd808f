/*
 * The least of a victim, with arguments for the tests of the tools:
 *
 *	idle			waits for the go signal, then checks a little memory
 *	idle megabytes N	N MiB of memory, checked at the end
 *	idle holes N		the same of every second page only
 *	idle touch N M		N MiB; every SIGUSR2 changes M pages and says "touched K"
 *	idle exit N		exits with N at once
 *	idle signal N		ends by signal N
 *	idle catch		says "signal N" for every one of a few signals, ends at SIGUSR1
 *	idle count [N]		counts as fast as it can on two threads, checks both counts;
 *				with N MiB of memory
 *	idle undumpable		after prctl(PR_SET_DUMPABLE, 0)
 */
#include <sys/prctl.h>

#include "victim.h"

static char *p;
static size_t size = MIB, step = 4096;
static atomic_bool stop;
static uint64_t counts[2][2];

void victim_hurt(void)
{
	p[size / 2] ^= 1;
}

static void say_signal(int n)
{
	victim_say("signal %d", n);
}

/* Two counters that are one apart at most, whenever this thread is stopped. */
static void *count(void *arg)
{
	uint64_t *c = arg;

	while (!stop) {
		((volatile uint64_t *)c)[0]++;
		((volatile uint64_t *)c)[1]++;
	}
	return NULL;
}

static void touch(int pages, int round)
{
	for (int i = 0; i < pages; i++) {
		size_t page = (victim_word(round, i) % (size / 4096)) * 4096;

		/* The pattern stays: only the last words of a page change. */
		((uint64_t *)(p + page))[511] = round;
	}
	victim_say("touched %d", round);
}

/* That each page has the number of the last round that changed it. */
static void check_touched(int pages, int rounds)
{
	char *seen = calloc(size / 4096, 1);

	for (int round = rounds; round && seen; round--)
		for (int i = 0; i < pages; i++) {
			size_t page = victim_word(round, i) % (size / 4096);
			uint64_t last = ((uint64_t *)(p + page * 4096))[511];

			if (!seen[page])
				CHECK(last == (uint64_t)round,
					"page %zu was changed in round %d, and has %llu", page,
					round, (long long)last);
			seen[page] = 1;
		}
	free(seen);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int value = argc > 2 ? atoi(argv[2]) : 0;
	pthread_t t[2];
	sigset_t set;
	int signo, rounds = 0;

	if (!strcmp(what, "exit"))
		return value;
	if (!strcmp(what, "signal")) {
		signal(value, SIG_DFL);
		sigemptyset(&set);
		sigprocmask(SIG_SETMASK, &set, NULL);
		raise(value);
	}
	if (value && strcmp(what, "signal"))
		size = value * MIB;
	if (!strcmp(what, "undumpable"))
		prctl(PR_SET_DUMPABLE, 0);
	p = victim_anon(size);
	if (!strcmp(what, "holes"))
		step = 8192;
	for (size_t at = 0; at < size; at += step)
		victim_fill(p + at, 4088, at);
	if (!strcmp(what, "catch")) {
		static const int caught[] = {
			SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR2, SIGCONT, SIGWINCH, SIGALRM};

		for (size_t i = 0; i < sizeof(caught) / sizeof(caught[0]); i++) {
			struct sigaction a = {.sa_handler = say_signal, .sa_flags = SA_RESTART};

			sigaction(caught[i], &a, NULL);
		}
	}
	if (!strcmp(what, "count"))
		for (int i = 0; i < 2; i++)
			t[i] = victim_thread(count, counts[i]);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	if (!strcmp(what, "touch")) {
		sigaddset(&set, SIGUSR2);
		sigprocmask(SIG_BLOCK, &set, NULL);
	}
	victim_ready();
	if (!strcmp(what, "touch")) {
		/* SIGUSR1 ends this, SIGUSR2 changes memory. */
		while ((signo = sigwaitinfo(&set, NULL)) != SIGUSR1)
			if (signo == SIGUSR2)
				touch(atoi(argv[3]), ++rounds);
		raise(SIGUSR1);
	}
	victim_wait();
	if (!strcmp(what, "count")) {
		uint64_t before[2] = {counts[0][0], counts[1][0]}, limit = victim_limit();
		volatile uint64_t(*now)[2] = counts;

		while ((now[0][0] == before[0] || now[1][0] == before[1]) &&
			victim_now() < limit)
			usleep(1000);
		stop = true;
		for (int i = 0; i < 2; i++) {
			pthread_join(t[i], NULL);
			CHECK(counts[i][0] == counts[i][1], "counts %llu and %llu",
				(long long)counts[i][0], (long long)counts[i][1]);
			CHECK(counts[i][0] > before[i], "thread %d stands still", i);
		}
	}
	if (rounds)
		check_touched(atoi(argv[3]), rounds);
	for (size_t at = 0; at < size; at += step)
		if (!SAME(p + at, 4088, at, "memory"))
			break;
	return victim_done();
}
