/* Which context is current, which device it is on, what is kept with it, and whether primary
 * contexts are there: asked again and again between all that changes the answer. On two devices
 * (t/split.t). */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "t/split/setup.h"

#define INVALID_CONTEXT      201
#define CONTEXT_IS_DESTROYED 709

static void *contexts[2]; /* on a device each */
static int (*hidden_make_current)(void *context), (*hidden_times_asked)(void);
static int (*hidden_create)(void **context, int device);
static int (*hidden_current)(void **context);
static int (*storage_put)(void *context, void *key, void *value, void *destructor);
static int (*storage_delete)(void *context, void *key);
static int (*storage_get)(void **value, void *context, void *key);
static char keys[6]; /* contexts[] have something under the first two */

/* Twice, as the second time the answer may be known. */
static void expect_in(void *context, int device)
{
	int has = context == contexts[0] || context == contexts[1];

	for (int i = 0; i < 2; i++) {
		int got = -1, again = -1;
		void *current, *first = NULL, *second = NULL;

		OK(cuCtxGetDevice(&got));
		OK(cuCtxGetDevice_v2(&again, NULL));
		CHECK(got == device && again == device);
		OK(cuCtxGetCurrent(&current));
		CHECK(current == context);
		CHECK(has == !storage_get(&first, NULL, &keys[0]));
		CHECK(has == !storage_get(&second, NULL, &keys[1]));
		CHECK(!has || (first == context && second == (char *)context + 1));
	}
}

static void expect(int device)
{
	expect_in(contexts[device], device);
}

static void expect_error(int error)
{
	int device;

	for (int i = 0; i < 2; i++) {
		CHECK_RESULT(cuCtxGetDevice(&device), error);
		CHECK_RESULT(cuCtxGetDevice_v2(&device, NULL), error);
	}
}

/* A destroyed context is current all the same, and tells its device, as with the driver (580). */
static void expect_gone(int device)
{
	for (int i = 0; i < 2; i++) {
		CUdeviceptr address;
		int got = -1, again = -1;

		OK(cuCtxGetDevice(&got));
		OK(cuCtxGetDevice_v2(&again, NULL));
		CHECK(got == device && again == device);
		CHECK_RESULT(cuMemAlloc_v2(&address, 8), CONTEXT_IS_DESTROYED);
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
	expect_in(own, 0);
	OK(cuCtxDestroy_v2(own));
	expect(1);
	OK(cuCtxCreate_v2(&own, 0, 0));
	expect_in(own, 0);
	in_thread(destroy, own);
	expect_gone(0);
	OK(cuCtxSetCurrent(contexts[1]));
	expect(1);

	OK(hidden_make_current(contexts[0]));
	expect(0);
	OK(hidden_make_current(contexts[1]));
	expect(1);
	in_thread(has_none, NULL);

	OK(hidden_create(&own, 0));
	expect_in(own, 0);
	OK(cuCtxDestroy_v2(own));
	expect(1);
}

/* With a lower half the driver need be asked once. A function without a name asks two of the
 * four itself, and when they are as they were, so are the others. */
static void known(void)
{
	for (int i = 0; i < 4; i++) {
		int device, before, wanted = !is_split() ? 400 : i % 2 ? 2 : 4;
		void *pointer;

		if (i == 0)
			OK(cuCtxSetCurrent(contexts[1]));
		if (i == 2)
			OK(hidden_make_current(contexts[0]));
		before = hidden_times_asked();
		for (int j = 0; j < 100; j++) {
			OK(cuCtxGetDevice(&device));
			OK(cuCtxGetCurrent(&pointer));
			OK(storage_get(&pointer, NULL, &keys[0]));
			OK(storage_get(&pointer, NULL, &keys[1]));
		}
		CHECK(hidden_times_asked() - before == wanted);
	}
}

static void expect_stored(void *context, int key, void *value)
{
	for (int i = 0; i < 2; i++) {
		void *got = NULL;

		CHECK(!!value == !storage_get(&got, context, &keys[key]) && got == value);
	}
}

static void *put_in_storage(void *value)
{
	OK(storage_put(contexts[0], &keys[2], value, NULL));
	return NULL;
}

static void *take_away(void *argument)
{
	OK(storage_delete(contexts[0], &keys[2]));
	return NULL;
}

#define VALUES 30000

static atomic_long published;

static void *publish(void *argument)
{
	for (long i = 1; i <= VALUES; i++) {
		OK(storage_put(contexts[0], &keys[2], (void *)i, NULL));
		published = i;
	}
	return NULL;
}

/* What is asked for while it changes may be either; afterwards it is new. */
static void published_by_another(void)
{
	pthread_t thread;
	void *value;
	long least;

	put_in_storage(NULL);
	pthread_create(&thread, NULL, publish, NULL);
	do {
		least = published;
		OK(storage_get(&value, NULL, &keys[2]));
		CHECK((long)value >= least);
	} while (least < VALUES);
	pthread_join(thread, NULL);
	take_away(NULL);
}

static jmp_buf out;
static int asked, leave;

/* In the middle of the call that takes the value away. */
static int destructor(void *context, void *key, void *value)
{
	void *got;

	asked = storage_get(&got, NULL, key);
	if (leave)
		longjmp(out, 1);
	return 0;
}

static void destroyed(void)
{
	for (leave = 0; leave < 2; leave++) {
		OK(storage_put(NULL, &keys[2], keys, (void *)destructor));
		expect_stored(NULL, 2, keys);
		asked = 0;
		if (!setjmp(out))
			storage_delete(NULL, &keys[2]);
		CHECK(asked != 0);
		expect_stored(NULL, 2, NULL);
	}
}

/* What is put beside a context, here and by others. */
static void stored(void)
{
	OK(cuCtxSetCurrent(contexts[0]));
	expect_stored(NULL, 2, NULL);
	put_in_storage(keys);
	expect_stored(NULL, 2, keys);
	put_in_storage(&keys[1]);
	expect_stored(NULL, 2, &keys[1]);
	in_thread(put_in_storage, &keys[2]);
	expect_stored(NULL, 2, &keys[2]);
	expect_stored(contexts[1], 0, contexts[1]);
	expect_stored(NULL, 0, contexts[0]);
	expect_stored(contexts[1], 2, NULL);
	take_away(NULL);
	expect_stored(NULL, 2, NULL);
	put_in_storage(keys);
	expect_stored(NULL, 2, keys);
	in_thread(take_away, NULL);
	expect_stored(NULL, 2, NULL);
	destroyed();
	published_by_another();
	/* More than are remembered. */
	for (int i = 2; i < 6; i++)
		OK(storage_put(NULL, &keys[i], &keys[i], NULL));
	for (int i = 0; i < 20; i++)
		expect_stored(NULL, 2 + i % 4, &keys[2 + i % 4]);
	for (int i = 2; i < 6; i++)
		OK(storage_delete(NULL, &keys[i]));
	expect(0);
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
	void *pointer;

	if (!pid) {
		alarm(20);
		wrong = 0;
		CHECK_RESULT(cuCtxGetDevice(&device), 3);
		CHECK_RESULT(cuCtxGetCurrent(&pointer), 3);
		CHECK(!is_split() || storage_get(&pointer, NULL, &keys[0]));
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
		expect_in(own, i % 2);
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

/* A handler comes in the middle of what makes and destroys contexts, and puts back what it is
 * told was there. */
static void put_back(void)
{
	void *own, *real;

	handled = 0;
	signals(handler, 50);
	while (handled < 5000) {
		OK(cuCtxSetCurrent(contexts[0]));
		expect(0);
		OK(cuCtxCreate_v2(&own, 0, 0));
		OK(hidden_current(&real));
		CHECK(real == own);
		expect_in(own, 0);
		OK(cuCtxDestroy_v2(own));
		OK(hidden_current(&real));
		CHECK(real != own);
	}
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
		void *current, *value, *real;
		int device, before;

		OK(hidden_make_current(contexts[i % 2]));
		OK(cuCtxGetDevice(&device));
		OK(cuCtxGetCurrent(&current));
		OK(storage_get(&value, NULL, &keys[0]));
		before = switched;
		OK(cuCtxGetDevice(&device));
		OK(cuCtxGetCurrent(&current));
		OK(storage_get(&value, NULL, &keys[0]));
		OK(hidden_current(&real));
		CHECK(switched != before ||
			(real == contexts[device] && real == current && real == value));
	}
	signals(NULL, 0);
}

int main(void)
{
	unsigned char id[16] = {0x6b, 0xd5, 0xfb, 0x6c},
		      storage_id[16] = {0xc6, 0x93, 0x33, 0x6e};
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
	hidden_current = (int (*)(void **))table[5];
	OK(cuGetExportTable((const void **)&table, storage_id));
	storage_put = (int (*)(void *, void *, void *, void *))table[0];
	storage_delete = (int (*)(void *, void *))table[1];
	storage_get = (int (*)(void **, void *, void *))table[2];
	for (int i = 0; i < 2; i++) {
		OK(storage_put(contexts[i], &keys[0], contexts[i], NULL));
		OK(storage_put(contexts[i], &keys[1], (char *)contexts[i] + 1, NULL));
	}
	one_thread();
	known();
	stored();
	primaries();
	CHECK(child() == 0);
	together();
	put_back();
	switched_by_handler();
	printf("done\n");
	return wrong != 0;
}
