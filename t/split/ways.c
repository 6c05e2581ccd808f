/*
 * ways WAY: an unusual way into or out of calls, gone many times before a checkpoint and again
 * after a restart.
 */
#include <dlfcn.h>
#include <setjmp.h>
#include <spawn.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "t/split/driver_victim.h"

#define NOT_INITIALIZED 3
#define THREADS         4

static void *context, *kernel;
static __thread int mine = 42;
static bool hurt;

void victim_hurt(void)
{
	hurt = true;
}

static int version(void)
{
	int v = 0;

	OK(cuDriverGetVersion(&v));
	CHECK(mine == 42, "storage of another thread");
	return v;
}

/* Have the driver call @function, on this thread. */
static void call_back(size_t (*function)(int))
{
	int grid, block;

	OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, kernel, function, 0, 0));
}

/* ---- callbacks that call back ---- */

static int depth;

static size_t deeper(int block)
{
	CHECK(mine == 42, "storage of another thread");
	if (depth-- > 0)
		call_back(deeper);
	return 0;
}

static void nest(void)
{
	for (int n = 1; n <= 1500; n *= 5) {
		depth = n;
		call_back(deeper);
	}
	depth = 1500;
	call_back(deeper);
}

/* ---- callbacks that do not return ---- */

static jmp_buf way_out;

static size_t jump(int block)
{
	longjmp(way_out, 1);
}

static void leave_by_jump(void)
{
	for (volatile int i = 0; i < 5000; i++)
		if (!setjmp(way_out))
			call_back(jump);
}

static size_t end_thread(int block)
{
	pthread_exit(&depth);
}

static void *ended_inside(void *argument)
{
	OK(cuCtxSetCurrent(context));
	call_back(end_thread);
	return NULL;
}

static void leave_by_exit(void)
{
	for (int i = 0; i < 100; i++) {
		void *result = NULL;
		pthread_t thread;

		MUST(!pthread_create(&thread, NULL, ended_inside, NULL));
		pthread_join(thread, &result);
		CHECK(result == &depth, "a thread ended with %p", result);
	}
}

/* ---- threads that are cancelled wherever they are ---- */

static void *calls_on(void *started)
{
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	*(atomic_bool *)started = true;
	while (started)
		version();
	return NULL;
}

static void leave_by_cancel(void)
{
	for (int i = 0; i < 100; i++) {
		atomic_bool started = false;
		void *result = NULL;
		pthread_t thread;

		MUST(!pthread_create(&thread, NULL, calls_on, &started));
		while (!started)
			sched_yield();
		pthread_cancel(thread);
		pthread_join(thread, &result);
		CHECK(result == PTHREAD_CANCELED, "a thread ended with %p", result);
	}
}

/* ---- handlers on stacks of their own ---- */

static atomic_int handled;
static atomic_bool stop;

static void handler(int signal)
{
	version();
	handled++;
}

static void *call_with_stack(void *argument)
{
	stack_t stack = {.ss_sp = malloc(64 * KIB), .ss_size = 64 * KIB};

	sigaltstack(&stack, NULL);
	while (!stop)
		version();
	stack.ss_flags = SS_DISABLE;
	sigaltstack(&stack, NULL);
	free(stack.ss_sp);
	return NULL;
}

static void handle_on_stacks(void)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART | SA_ONSTACK};
	struct itimerval often = {{0, 500}, {0, 500}}, never = {0};
	pthread_t threads[THREADS];

	handled = 0;
	stop = false;
	sigaction(SIGALRM, &action, NULL);
	for (int i = 0; i < THREADS; i++)
		MUST(!pthread_create(&threads[i], NULL, call_with_stack, NULL));
	setitimer(ITIMER_REAL, &often, NULL);
	while (handled < 500)
		version();
	CHECK(!seteuid(geteuid()), "seteuid: %m");
	setitimer(ITIMER_REAL, &never, NULL);
	stop = true;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

/* ---- the library opened and closed; children of all sorts ---- */

static void open_and_close(void)
{
	for (int i = 0; i < 300; i++) {
		void *library = dlopen("libcuda.so.1", RTLD_NOW);
		int (*get)(int *), v = 0;

		MUST(library);
		get = (int (*)(int *))dlsym(library, "cuDriverGetVersion");
		OK(get(&v));
		dlclose(library);
	}
}

static int status_of(pid_t pid)
{
	int status = -1;

	while (waitpid(pid, &status, 0) < 0)
		MUST(errno == EINTR);
	return status;
}

static void have_children(void)
{
	char *const arguments[] = {"true", NULL};
	void *current;
	pid_t pid;

	for (int i = 0; i < 10; i++) {
		pid = vfork();
		if (!pid)
			_exit(7);
		CHECK(status_of(pid) == 7 << 8, "a child of vfork has ended otherwise");
		MUST(!posix_spawnp(&pid, "true", NULL, NULL, arguments, environ));
		CHECK(!status_of(pid), "a spawned child has ended otherwise");
		pid = fork();
		if (!pid)
			_exit(cuCtxGetCurrent(&current));
		CHECK(status_of(pid) == NOT_INITIALIZED << 8, "a child can use the driver");
	}
}

static const struct {
	const char *name;
	void (*go)(void);
} ways[] = {
	{"nested", nest},
	{"jump", leave_by_jump},
	{"exit", leave_by_exit},
	{"cancel", leave_by_cancel},
	{"stacks", handle_on_stacks},
	{"library", open_and_close},
	{"children", have_children},
};

static void go(const char *name)
{
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (!strcmp(ways[i].name, name))
			ways[i].go();
	OK(cuCtxSynchronize());
	CHECK(version() == (hurt ? 0 : 13000), "another version");
}

int main(int argc, char **argv)
{
	void *module;

	MUST(argc > 1);
	WORKS(cuInit(0));
	WORKS(cuDevicePrimaryCtxRetain(&context, 0));
	WORKS(cuCtxSetCurrent(context));
	WORKS(cuModuleLoadData(&module, "sim module\n"));
	WORKS(cuModuleGetFunction(&kernel, module, "count"));
	go(argv[1]);
	victim_ready();
	victim_wait();
	go(argv[1]);
	return victim_done();
}
