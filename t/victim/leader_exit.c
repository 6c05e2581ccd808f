/*
 * The main thread has ended, the others go on.
 *
 *	leader_exit [STATUS]
 *
 * With STATUS, the main thread's, the others end one by one, too.
 */
#include <sys/wait.h>

#include "victim.h"

static pthread_t leader;
static int answer = 7, pipe_ends[2], status = -1;
static char *shared;
static timer_t timer;
static pid_t child;

void victim_hurt(void)
{
	answer = 0;
}

static void prepare(void)
{
	struct itimerspec soon = {.it_value = {1000, 0}};
	struct sigevent none = {.sigev_notify = SIGEV_NONE};

	shared = victim_map(64 * KIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
	victim_fill(shared, 64 * KIB, 1);
	MUST(!pipe(pipe_ends) && write(pipe_ends[1], "bytes", 5) == 5);
	MUST(!timer_create(CLOCK_MONOTONIC, &none, &timer) &&
		!timer_settime(timer, 0, &soon, NULL));
	child = fork();
	MUST(child >= 0);
	while (!child)
		pause();
}

static void check_leader(void)
{
	char path[64], line[256] = "";
	struct itimerspec left;
	int ended;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", getpid(), getpid());
	f = fopen(path, "r");
	CHECK(f && fgets(line, sizeof(line), f) && strstr(line, ") Z "),
		"the leader is not dead: %s", line);
	CHECK(strstr(line, "(first) "), "its name has changed: %s", line);
	CHECK(answer == 7, "memory");
	SAME(shared, 64 * KIB, 1, "shared memory");
	CHECK(read(pipe_ends[0], line, sizeof(line)) == 5 && !memcmp(line, "bytes", 5), "pipe");
	CHECK(!timer_gettime(timer, &left) && left.it_value.tv_sec > 500, "timer");
	CHECK(!kill(child, SIGKILL) && waitpid(child, &ended, 0) == child && WIFSIGNALED(ended),
		"child");
}

static void *sleeper(void *arg)
{
	pthread_join((pthread_t)arg, NULL);
	return NULL;
}

static void *rest(void *arg)
{
	pthread_t other;
	int result;

	pthread_join(leader, NULL);
	pthread_setname_np(pthread_self(), "second");
	other = victim_thread(sleeper, (void *)pthread_self());
	(void)other;
	victim_ready();
	victim_wait();
	check_leader();
	result = victim_done();
	if (result || status < 0)
		_exit(result);
	return NULL;
}

int main(int argc, char **argv)
{
	sigset_t set;

	leader = pthread_self();
	pthread_setname_np(leader, "first");
	prepare();
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	MUST(!pthread_sigmask(SIG_BLOCK, &set, NULL));
	if (argc > 1)
		status = atoi(argv[1]);
	victim_thread(rest, NULL);
	if (status < 0)
		pthread_exit(NULL);
	/* glibc's way of ending knows no status. */
	syscall(SYS_exit, status);
	return 1;
}
