/* Which device the current context is on, and whether primary contexts are there: asked again
 * and again between all that changes the answer. On two devices (t/split.t). */
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "t/split/setup.h"

#define INVALID_CONTEXT      201
#define CONTEXT_IS_DESTROYED 709

static void *contexts[2]; /* on a device each */
static int (*hidden_make_current)(void *context), (*hidden_times_asked)(void);
static int (*hidden_create)(void **context, int device);

/* Twice, as the second time the answer may be known. */
static void expect(int device)
{
	for (int i = 0; i < 2; i++) {
		int got = -1, again = -1;

		OK(cuCtxGetDevice(&got));
		OK(cuCtxGetDevice_v2(&again, NULL));
		CHECK(got == device && again == device);
	}
}

static void expect_error(int error)
{
	int device;

	for (int i = 0; i < 2; i++) {
		CHECK_RESULT(cuCtxGetDevice(&device), error);
		CHECK_RESULT(cuCtxGetDevice_v2(&device, NULL), error);
	}
}

static void expect_primary(int device, unsigned flags, int active)
{
	for (int i = 0; i < 2; i++) {
		unsigned got = 99;
		int is = -1;

		OK(cuDevicePrimaryCtxGetState(device, &got, &is));
		CHECK(got == flags && !is == !active);
	}
}

static void *in_thread(void *(*run)(void *), void *argument)
{
	pthread_t thread;
	void *result = NULL;

	pthread_create(&thread, NULL, run, argument);
	pthread_join(thread, &result);
	return result;
}

static void *has_none(void *argument)
{
	expect_error(INVALID_CONTEXT);
	return NULL;
}

static void *destroy(void *context)
{
	OK(cuCtxDestroy_v2(context));
	return NULL;
}

static void one_thread(void)
{
	void *own, *popped;
	int device;

	expect_error(INVALID_CONTEXT);
	for (int i = 0; i < 4; i++) {
		OK(cuCtxSetCurrent(contexts[i % 2]));
		expect(i % 2);
	}
	OK(cuCtxPushCurrent_v2(contexts[0]));
	expect(0);
	OK(cuCtxPopCurrent_v2(&popped));
	expect(1);
	OK(cuCtxGetDevice_v2(&device, contexts[0]));
	CHECK(device == 0);
	expect(1);

	OK(cuCtxCreate_v2(&own, 0, 0));
	expect(0);
	OK(cuCtxDestroy_v2(own));
	expect(1);
	OK(cuCtxCreate_v2(&own, 0, 0));
	expect(0);
	in_thread(destroy, own);
	expect_error(CONTEXT_IS_DESTROYED);
	OK(cuCtxSetCurrent(contexts[1]));
	expect(1);

	OK(hidden_make_current(contexts[0]));
	expect(0);
	OK(hidden_make_current(contexts[1]));
	expect(1);
	in_thread(has_none, NULL);

	OK(hidden_create(&own, 0));
	expect(0);
	OK(cuCtxDestroy_v2(own));
	expect(1);
}

/* With a lower half the driver need not be asked. */
static void known(void)
{
	int device, before, wanted = is_split() ? 0 : 100;

	for (int i = 0; i < 2; i++) {
		OK(i ? cuCtxSetCurrent(contexts[1]) : hidden_make_current(contexts[0]));
		OK(cuCtxGetDevice(&device));
		before = hidden_times_asked();
		for (int j = 0; j < 100; j++)
			OK(cuCtxGetDevice(&device));
		CHECK(hidden_times_asked() - before - is_split() == wanted);
	}
}

static void *change_primary(void *argument)
{
	void *context;

	OK(cuDevicePrimaryCtxSetFlags_v2(0, 8));
	OK(cuDevicePrimaryCtxRetain(&context, 1));
	return NULL;
}

static void primaries(void)
{
	expect_primary(0, 4, 1);
	OK(cuDevicePrimaryCtxSetFlags_v2(0, 2));
	expect_primary(0, 2, 1);
	OK(cuDevicePrimaryCtxRelease_v2(1));
	expect_primary(1, 0, 0);
	in_thread(change_primary, NULL);
	expect_primary(0, 8, 1);
	expect_primary(1, 0, 1);
}

static int child(void)
{
	pid_t pid = fork();
	int status, device;
	unsigned flags;

	if (!pid) {
		alarm(20);
		wrong = 0;
		CHECK_RESULT(cuCtxGetDevice(&device), 3);
		CHECK_RESULT(cuDevicePrimaryCtxGetState(0, &flags, &device), 3);
		_exit(wrong);
	}
	waitpid(pid, &status, 0);
	return status;
}

static volatile int handled;

/* Has other contexts in between, and puts back what was there. What handlers call takes no
 * lock. */
static void handler(int signal)
{
	void *before;
	int device;

	OK(cuCtxGetCurrent(&before));
	for (int i = 0; i < 2; i++) {
		OK(hidden_make_current(contexts[i]));
		expect(i);
	}
	OK(hidden_make_current(before));
	cuCtxGetDevice(&device);
	handled++;
}

static void *change(void *argument)
{
	for (int i = 0; handled < 5000; i++) {
		OK(cuCtxSetCurrent(contexts[i % 2]));
		expect(i % 2);
	}
	return NULL;
}

static void *create_and_destroy(void *argument)
{
	for (int i = 0; i < 2000; i++) {
		void *own;

		OK(cuCtxCreate_v2(&own, 0, i % 2));
		expect(i % 2);
		OK(cuCtxDestroy_v2(own));
		expect_primary(0, 8, 1);
	}
	return NULL;
}

static void signals(void (*handle)(int), int microseconds)
{
	const struct itimerval tick = {{0, microseconds}, {0, microseconds}};

	if (microseconds)
		signal(SIGALRM, handle);
	setitimer(ITIMER_REAL, &tick, NULL);
}

/* All of it beside each other, with many signals. */
static void together(void)
{
	pthread_t threads[4];

	signals(handler, 100);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, i % 2 ? create_and_destroy : change, NULL);
	change(NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	signals(NULL, 0);
}

static volatile int switched;

static void switch_context(int signal)
{
	OK(hidden_make_current(contexts[switched++ % 2]));
}

/* A handler changes the context for good, also while it is being asked for. */
static void switched_by_handler(void)
{
	signals(switch_context, 50);
	for (int i = 0; switched < 5000; i++) {
		void *current;
		int device, before;

		OK(hidden_make_current(contexts[i % 2]));
		OK(cuCtxGetDevice(&device));
		before = switched;
		OK(cuCtxGetDevice(&device));
		OK(cuCtxGetCurrent(&current));
		CHECK(switched != before || current == contexts[device]);
	}
	signals(NULL, 0);
}

int main(void)
{
	unsigned char id[16] = {0x6b, 0xd5, 0xfb, 0x6c};
	void *const *table;

	OK(cuInit(0));
	expect_primary(0, 0, 0);
	OK(cuDevicePrimaryCtxSetFlags_v2(0, 4));
	for (int i = 0; i < 2; i++)
		OK(cuDevicePrimaryCtxRetain(&contexts[i], i));
	OK(cuGetExportTable((const void **)&table, id));
	hidden_make_current = (int (*)(void *))table[2];
	hidden_times_asked = (int (*)(void))table[3];
	hidden_create = (int (*)(void **, int))table[4];
	one_thread();
	known();
	primaries();
	CHECK(child() == 0);
	together();
	switched_by_handler();
	printf("done\n");
	return wrong != 0;
}
