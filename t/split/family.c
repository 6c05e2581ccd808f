/*
 * family: a process with a lower half, a child by fork that has the remains of it, and a child
 * that has executed a program and has a lower half of its own.
 */
#include <sys/wait.h>

#include "t/split/driver_victim.h"

static int wanted;  /* result of a call in this process */
static int devices; /* and what comes out of it, once it is known */

void victim_hurt(void)
{
	wanted = 77;
}

static bool asks(void)
{
	int count = 0, r = cuDeviceGetCount(&count);

	if (!r && !devices)
		devices = count;
	if (r == wanted && (r || (count > 0 && count == devices)))
		return true;
	fprintf(stderr, "cuDeviceGetCount gives %d, not %d, and %d devices of %d\n", r, wanted,
		count, devices);
	return false;
}

static char stack[64 * KIB];

static void handler(int n)
{
}

/* What the process has to be asked for itself. */
static void make_settings(void)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
	stack_t alternate = {.ss_sp = stack, .ss_size = sizeof(stack)};

	MUST(!sigaction(SIGURG, &action, NULL));
	MUST(signal(SIGWINCH, SIG_IGN) != SIG_ERR);
	MUST(!sigaltstack(&alternate, NULL));
}

static bool has_settings(void)
{
	struct sigaction caught, ignored;
	stack_t alternate;

	MUST(!sigaction(SIGURG, NULL, &caught) && !sigaction(SIGWINCH, NULL, &ignored));
	MUST(!sigaltstack(NULL, &alternate));
	return caught.sa_handler == handler && caught.sa_flags & SA_ONSTACK &&
	       ignored.sa_handler == SIG_IGN && alternate.ss_sp == stack &&
	       alternate.ss_size == sizeof(stack);
}

/* A child says that it is there, waits for a byte, and ends with what it found before and
 * after. */
static int child(int ready, int go)
{
	bool before = asks(), after;
	char byte = 0;

	make_settings();
	MUST(write(ready, &byte, 1) == 1);
	while (read(go, &byte, 1) < 0)
		MUST(errno == EINTR);
	after = asks() && has_settings();
	return before && after ? 0 : 1 + before + 2 * after;
}

static pid_t make_child(const char *program, int *go)
{
	int ready[2], pipe_go[2];
	char a[16], b[16], byte;
	pid_t pid;

	MUST(!pipe(ready) && !pipe(pipe_go));
	pid = fork();
	if (!pid && program) {
		snprintf(a, sizeof(a), "%d", ready[1]);
		snprintf(b, sizeof(b), "%d", pipe_go[0]);
		execl(program, program, a, b, NULL);
		_exit(9);
	}
	if (!pid) {
		wanted = 3; /* CUDA_ERROR_NOT_INITIALIZED, as natively */
		_exit(child(ready[1], pipe_go[0]));
	}
	MUST(read(ready[0], &byte, 1) == 1);
	close(ready[0]);
	close(ready[1]);
	close(pipe_go[0]);
	*go = pipe_go[1];
	return pid;
}

static int ask_to_end(pid_t pid, int go)
{
	int status = -1;

	MUST(write(go, "", 1) == 1);
	while (waitpid(pid, &status, 0) < 0)
		MUST(errno == EINTR);
	return status;
}

int main(int argc, char **argv)
{
	pid_t forked, executed;
	int go[2];

	WORKS(cuInit(0));
	if (argc == 3)
		return child(atoi(argv[1]), atoi(argv[2]));
	MUST(asks());
	forked = make_child(NULL, &go[0]);
	executed = make_child("/proc/self/exe", &go[1]);
	victim_ready();
	victim_wait();
	CHECK(asks(), "the parent gets something else");
	CHECK(!ask_to_end(forked, go[0]), "the child of fork gets something else");
	CHECK(!ask_to_end(executed, go[1]), "the child that has executed gets something else");
	return victim_done();
}
