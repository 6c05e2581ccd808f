/*
 * elsewhere DEVICES ROUNDS [nvml]: what a program has of the driver's own addresses: tables of functions without
 * names, contexts, texts of errors; with two devices their contexts have access to each other. In each round it is
 * used behind a restart, which may be on another build of the driver and on other devices; and more of it is fetched,
 * and used in the next round.
 */
#include <dlfcn.h>

#include "t/split/driver_victim.h"

#define DEVICES_MAX  4
#define ROUNDS_MAX   8
#define PEER_ENABLED 704

int cuGetErrorString(int error, const char **text);
int cuDeviceGetUuid_v2(unsigned char uuid[16], int device);

static const unsigned char functions_id[16] = {0x6b, 0xd5, 0xfb, 0x6c, 1},
			   storage_id[16] = {0xc6, 0x93, 0x33, 0x6e, 1},
			   modules_id[16] = {0x6e, 0x16, 0x3f, 0xbe, 1},
			   check_id[16] = {0xd4, 0x08, 0x20, 0x55, 1};

static int devices;
static void *contexts[DEVICES_MAX];
static CUdeviceptr memory[DEVICES_MAX];
static void *module, *function, *stream;
static int key;

/* What was fetched in each round. */
static struct tables {
	void *const *functions, *const *storage, *const *modules, *const *check;
	const char *text;
} fetched[ROUNDS_MAX];
static int rounds;

void victim_hurt(void)
{
	uint64_t wrong = 1;

	OK(cuCtxSetCurrent(contexts[0]));
	OK(cuMemcpyHtoD_v2(memory[0], &wrong, sizeof(wrong)));
}

static void fetch(void)
{
	struct tables *t = &fetched[rounds++];

	OK(cuGetExportTable((const void **)&t->functions, functions_id));
	OK(cuGetExportTable((const void **)&t->storage, storage_id));
	OK(cuGetExportTable((const void **)&t->modules, modules_id));
	OK(cuGetExportTable((const void **)&t->check, check_id));
	OK(cuGetErrorString(700, &t->text));
}

static void note_function(void *data, void *of_module)
{
	void **found = data;

	*found = of_module;
}

/* Each behaves as it did with the driver that it came from. */
static void check_tables(const struct tables *t)
{
	int (*make_current)(void *) = (int (*)(void *))t->functions[2];
	int (*get)(void **, void *, void *) = (int (*)(void **, void *, void *))t->storage[2];
	int (*each)(void *, void *, void (*)(void *, void *), void *) = t->modules[7];
	void *value = NULL, *context = NULL, *found = NULL;

	CHECK(t->functions[0] == (void *)56, "a table of %p bytes", t->functions[0]);
	OK(make_current(contexts[devices - 1]));
	OK(cuCtxGetCurrent(&context));
	CHECK(context == contexts[devices - 1], "%p is current", context);
	OK(make_current(contexts[0]));
	OK(get(&value, contexts[0], &key));
	CHECK(value == &key, "%p is kept", value);
	CHECK(each(contexts[0], module, note_function, &found) > 0 && found, "no functions");
	CHECK(!strcmp(t->text, "an error of the simulated driver"), "text: %s", t->text);
}

/* The last that was fetched is of the driver that is there, and its check passes. */
static void check_genuine(void)
{
	int (*check)(int, int *) = (int (*)(int, int *))fetched[rounds - 1].check[1];
	int result = 0;

	OK(check(9, &result));
	CHECK(result == 9, "the check gives %d", result);
}

static uint64_t launches;

/* The first device's number becomes one more. */
static void launch(void)
{
	uint64_t a = memory[0], b = 1, c = 1;

	OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, (void *[]){&a, &b, &c}, NULL));
	OK(cuStreamSynchronize(stream));
	launches++;
}

static void make(void)
{
	for (int i = devices - 1; i >= 0; i--) {
		uint64_t number = 100 + i;

		WORKS(cuDevicePrimaryCtxRetain(&contexts[i], i));
		WORKS(cuCtxSetCurrent(contexts[i]));
		WORKS(cuMemAlloc_v2(&memory[i], 8));
		WORKS(cuMemcpyHtoD_v2(memory[i], &number, 8));
	}
	for (int i = 1; i < devices; i++)
		WORKS(cuCtxEnablePeerAccess(contexts[i], 0));
	WORKS(cuModuleLoadData(&module, "sim module"));
	WORKS(cuModuleGetFunction(&function, module, "scale"));
	WORKS(cuStreamCreate(&stream, 0));
	fetch();
	WORKS(((int (*)(void *, void *, void *, void *))fetched[0].storage[0])(
		contexts[0], &key, &key, NULL));
}

static void check(void)
{
	for (int i = 0; i < devices; i++) {
		uint64_t number = 0, wanted = 100 + (i ? (uint64_t)i : launches);
		int device = -1;

		OK(cuCtxSetCurrent(contexts[i]));
		OK(cuCtxGetDevice(&device));
		CHECK(device == i, "context %d is on device %d", i, device);
		OK(cuMemcpyDtoH_v2(&number, memory[i], 8));
		CHECK(number == wanted, "device %d has %lu, not %lu", i, number, wanted);
	}
	OK(cuCtxSetCurrent(contexts[0]));
	for (int i = 1; i < devices; i++)
		CHECK(cuCtxEnablePeerAccess(contexts[i], 0) == PEER_ENABLED,
			"no access to device %d", i);
	launch();
}

static void say_devices(void)
{
	char line[DEVICES_MAX + 1] = "";

	for (int i = 0; i < devices; i++) {
		unsigned char uuid[16] = "";

		OK(cuDeviceGetUuid_v2(uuid, i));
		line[i] = uuid[0];
	}
	victim_say("devices %s", line);
}

static void use_nvml(void)
{
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	int (*init)(void) = library ? (int (*)(void))dlsym(library, "nvmlInit_v2") : NULL;

	MUST(init);
	WORKS(init());
}

int main(int argc, char **argv)
{
	int last = argc > 2 ? atoi(argv[2]) : 1;

	devices = argc > 1 ? atoi(argv[1]) : 1;
	WORKS(cuInit(0));
	make();
	if (argc > 3)
		use_nvml();
	check();
	victim_ready();
	for (int round = 1; round <= last; round++) {
		victim_wait();
		check();
		for (int i = 0; i < rounds; i++)
			check_tables(&fetched[i]);
		fetch();
		check_tables(&fetched[rounds - 1]);
		check_genuine();
		say_devices();
		if (round < last)
			victim_say("round %d", round);
	}
	return victim_done();
}
