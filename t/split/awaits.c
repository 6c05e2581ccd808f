/*
 * awaits HOW: kernels that wait for what the host does, which stands still at a checkpoint.
 *	turns	one is queued and gets what it waits for a moment later, time and again
 *	inside	likewise, with a thread in the driver that waits for it
 *	never	one waits for something that does not come before the signal
 *	prints	as turns, and what the kernels print has its place among what the host prints
 *	maps	memory is made, mapped and made accessible time and again, a pause in between
 *	links	linker states that cannot be made again come and go time and again
 */
#include "t/split/driver_victim.h"
#include "t/split/memory_kinds.h"

#define COUNT 1024

static void *context, *stream, *await, *count, *print; /* the last three are kernels */
static CUdeviceptr memory;
static uint64_t *flag, turn;
static atomic_bool stop;
static atomic_ulong said;

void victim_hurt(void)
{
	victim_failures++;
}

static void *load(const char *name)
{
	void *module = NULL, *function = NULL;

	OK(cuModuleLoadData(&module, "sim module"));
	OK(cuModuleGetFunction(&function, module, name));
	return function;
}

static void launch(void *function, uint64_t a, uint64_t b)
{
	uint64_t c = 0;
	void *parameters[] = {&a, &b, &c};

	OK(cuLaunchKernel(function, COUNT / 32, 1, 1, 32, 1, 1, 0, stream, parameters, NULL));
}

static void say(uint64_t value)
{
	__atomic_store_n(flag, value, __ATOMIC_RELEASE);
}

static void pause_ms(unsigned ms)
{
	struct timespec t = {0, ms * MSEC};

	while (nanosleep(&t, &t))
		;
}

static void check_memory(uint64_t first)
{
	static uint32_t words[COUNT];

	OK(cuMemcpyDtoH_v2(words, memory, sizeof(words)));
	for (uint32_t i = 0; i < COUNT && !victim_failures; i++)
		CHECK(words[i] == i + first, "word %u is %u, turn %lu", i, words[i], first);
}

static void take_turn(void)
{
	turn++;
	launch(await, (uintptr_t)flag, turn);
	launch(count, memory, turn);
	pause_ms(5);
	say(turn);
	OK(cuStreamSynchronize(stream));
	check_memory(turn);
	pause_ms(5);
}

static void *take_turns(void *argument)
{
	OK(cuCtxSetCurrent(context));
	while (!stop)
		take_turn();
	return NULL;
}

/* The host prints before it waits and after, with the text in its buffer all the while. */
static void *take_printing_turns(void *argument)
{
	OK(cuCtxSetCurrent(context));
	while (!stop) {
		turn++;
		launch(await, (uintptr_t)flag, turn);
		launch(print, turn, 0);
		printf("queued %lu\n", turn);
		pause_ms(5);
		say(turn);
		cuStreamQuery(stream);
		printf("said %lu\n", turn);
		OK(cuStreamSynchronize(stream));
		printf("done %lu\n", turn);
		pause_ms(5);
	}
	return NULL;
}

static void check_printed(int file)
{
	FILE *printed = fdopen(file, "r");
	char line[100], expected[100];
	static const char *const lines[] = {
		"queued %lu\n", "said %lu\n", "kernel says %lu\n", "done %lu\n"};

	fflush(stdout);
	rewind(printed);
	for (uint64_t i = 0; i < 4 * turn && !victim_failures; i++) {
		snprintf(expected, sizeof(expected), lines[i % 4], i / 4 + 1);
		CHECK(fgets(line, sizeof(line), printed), "no line %lu", i);
		CHECK(!strcmp(line, expected), "line %lu of %lu is %s", i, turn, line);
	}
}

/* Says what the other waits for, in the driver. */
static void *speak(void *argument)
{
	while (!stop) {
		pause_ms(5);
		say(atomic_load(&said));
	}
	return NULL;
}

static void *wait_inside(void *argument)
{
	OK(cuCtxSetCurrent(context));
	while (!stop) {
		turn++;
		launch(await, (uintptr_t)flag, turn);
		launch(count, memory, turn);
		said = turn;
		OK(cuCtxSynchronize());
		check_memory(turn);
	}
	return NULL;
}

static void *map_memory(void *argument)
{
	OK(cuCtxSetCurrent(context));
	while (!stop) {
		CUdeviceptr at;
		uint64_t handle;

		turn++;
		OK(cuMemAddressReserve(&at, 2 * MIB, 0, 0, 0));
		OK(cuMemCreate(&handle, 2 * MIB, &on_device, 0));
		pause_ms(5);
		OK(cuMemMap(at, 2 * MIB, 0, handle, 0));
		pause_ms(5);
		OK(cuMemSetAccess(at, 2 * MIB, &reachable, 1));
		pause_ms(20);
		OK(cuMemUnmap(at, 2 * MIB));
		OK(cuMemRelease(handle));
		OK(cuMemAddressFree(at, 2 * MIB));
	}
	return NULL;
}

static void *link_code(void *argument)
{
	OK(cuCtxSetCurrent(context));
	while (!stop) {
		void *linker;

		turn++;
		/* CU_JIT_GLOBAL_SYMBOL_NAMES */
		OK(cuLinkCreate_v2(1, (const int[]){17}, (void *[]){NULL}, &linker));
		pause_ms(40);
		OK(cuLinkDestroy(linker));
		pause_ms(20);
	}
	return NULL;
}

static void set_up(void)
{
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	OK(cuStreamCreate(&stream, 1));
	OK(cuMemAlloc_v2(&memory, COUNT * 4));
	OK(cuMemHostAlloc((void **)&flag, 4096, 0));
	say(0);
	await = load("await");
	count = load("count");
	print = load("print");
}

static void run(void *(*one)(void *), void *(*other)(void *))
{
	pthread_t a = victim_thread(one, NULL), b = 0;
	uint64_t before;

	if (other)
		b = victim_thread(other, NULL);
	victim_ready();
	victim_wait();
	before = __atomic_load_n(&turn, __ATOMIC_ACQUIRE);
	while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) < before + 3 && !victim_failures)
		pause_ms(1);
	stop = true;
	pthread_join(a, NULL);
	if (other)
		pthread_join(b, NULL);
}

static void prints(void)
{
	int file = memfd_create("printed", 0);

	stdout = fdopen(dup(file), "w");
	run(take_printing_turns, NULL);
	check_printed(file);
}

static void never(void)
{
	launch(await, (uintptr_t)flag, 1);
	launch(count, memory, 7);
	victim_ready();
	victim_wait();
	say(1);
	OK(cuStreamSynchronize(stream));
	check_memory(7);
}

int main(int argc, char **argv)
{
	set_up();
	if (!strcmp(argv[1], "turns"))
		run(take_turns, NULL);
	else if (!strcmp(argv[1], "inside"))
		run(wait_inside, speak);
	else if (!strcmp(argv[1], "prints"))
		prints();
	else if (!strcmp(argv[1], "maps"))
		run(map_memory, NULL);
	else if (!strcmp(argv[1], "links"))
		run(link_code, NULL);
	else
		never();
	return victim_done();
}
