/* The main thread has ended, the others go on. */
#include "victim.h"

static pthread_t leader;
static int answer = 7;

void victim_hurt(void)
{
	answer = 0;
}

static void *rest(void *arg)
{
	char path[64], line[256] = "";
	FILE *f;

	pthread_join(leader, NULL);
	victim_ready();
	victim_wait();
	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", getpid(), getpid());
	f = fopen(path, "r");
	CHECK(f && fgets(line, sizeof(line), f) && strstr(line, ") Z "),
		"the leader is not dead: %s", line);
	CHECK(answer == 7, "memory");
	_exit(victim_done());
}

int main(void)
{
	leader = pthread_self();
	victim_thread(rest, NULL);
	pthread_exit(NULL);
}
