/* An orphan whose main thread has ended, while another thread of it runs on. */
#include <sys/wait.h>

#include "victim.h"

static int ask[2], answer[2];
static pid_t orphan;

static void *serve(void *arg)
{
	char c;

	victim_until_ended(getpid());
	MUST(write(answer[1], "!", 1) == 1);
	while (read(ask[0], &c, 1) == 1)
		MUST(write(answer[1], &c, 1) == 1);
	exit(0);
}

static void be_orphan(void)
{
	victim_thread(serve, NULL);
	close(ask[1]);
	pthread_exit(NULL);
}

void victim_hurt(void)
{
	kill(orphan, SIGKILL);
	while (!kill(orphan, 0))
		usleep(500);
}

int main(void)
{
	pid_t between,
		*shared = victim_map(4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
	char c = 0;

	signal(SIGPIPE, SIG_IGN);
	MUST(!pipe(ask) && !pipe(answer));
	between = fork();
	MUST(between >= 0);
	if (!between) {
		between = fork();
		if (!between)
			be_orphan();
		*shared = between;
		_exit(between < 0);
	}
	MUST(waitpid(between, NULL, 0) == between);
	orphan = *shared;
	close(answer[1]);
	close(ask[0]);
	MUST(read(answer[0], &c, 1) == 1);
	victim_ready();
	victim_wait();
	CHECK(write(ask[1], "?", 1) == 1 && read(answer[0], &c, 1) == 1 && c == '?',
		"the orphan does not answer");
	close(ask[1]);
	CHECK(!read(answer[0], &c, 1), "the orphan does not end");
	return victim_done();
}
