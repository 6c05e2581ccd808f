/* Ways to functions other than by name: cuGetProcAddress for old and new callers, and the
 * tables without names. */
#include <dlfcn.h>

#include "t/split/setup.h"

#define PER_THREAD 2

static __thread int mine = 42;
static int destroyed;

static int destroy(void *context, void *key, void *value)
{
	CHECK(mine == 42 && value == (void *)77);
	destroyed++;
	return 0;
}

/* What cuGetProcAddress must give for @name is what the library exports as @symbol. */
static void expect(const char *name, int version, int flags, const char *symbol)
{
	void *function = NULL;
	int status = -1;

	OK(cuGetProcAddress_v2(name, &function, version, flags, &status));
	CHECK(status == 0);
	if (!function || function != dlsym(RTLD_DEFAULT, symbol)) {
		fprintf(stderr, "%s for %d, flags %d is not %s\n", name, version, flags,
			symbol);
		wrong++;
	}
}

static void versions(void)
{
	void *function;
	int status;

	expect("cuMemAlloc", 13000, 0, "cuMemAlloc_v2");
	expect("cuMemAlloc", 3000, 0, "cuMemAlloc");
	expect("cuMemcpyHtoD", 13000, 0, "cuMemcpyHtoD_v2");
	expect("cuMemcpyHtoD", 13000, PER_THREAD, "cuMemcpyHtoD_v2_ptds");
	expect("cuLaunchKernel", 12000, PER_THREAD, "cuLaunchKernel_ptsz");
	expect("cuLaunchKernel", 6000, PER_THREAD, "cuLaunchKernel");
	expect("cuInit", 12000, PER_THREAD, "cuInit");
	expect("cuStreamGetCaptureInfo", 11010, 0, "cuStreamGetCaptureInfo");
	expect("cuStreamGetCaptureInfo", 11030, 0, "cuStreamGetCaptureInfo_v2");
	expect("cuStreamGetCaptureInfo", 12030, PER_THREAD, "cuStreamGetCaptureInfo_v3_ptsz");
	expect("cuGetProcAddress", 11030, 0, "cuGetProcAddress");
	expect("cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2");
	expect("cuLaunchHostFunc", 12000, 0, "cuLaunchHostFunc");
	CHECK_RESULT(cuGetProcAddress_v2("cuNone", &function, 13000, 0, &status), 500);
	CHECK(status == 1);
	CHECK_RESULT(
		cuGetProcAddress_v2("cuGreenCtxCreate", &function, 11000, 0, &status), 500);
	CHECK(status == 2);
	CHECK_RESULT(cuGetProcAddress_v2(NULL, &function, 13000, 0, &status), 1);
	if (is_split()) {
		status = 0;
		CHECK_RESULT(
			cuGetProcAddress_v2("cuFromTheFuture", &function, 13000, 0, &status),
			500);
		CHECK(status == 1 && !function);
	}
}

static const unsigned char profilers[16] = {0x2c, 0x8e, 0x0a, 0xd8, 0x07, 0x10, 0xab, 0x4e,
	0x90, 0xdd, 0x54, 0x71, 0x9f, 0xe5, 0xf7, 0x4b};

static void tables(void)
{
	unsigned char id[16] = {0x6b, 0xd5, 0xfb, 0x6c};
	void *const *table, *const *again;
	int result = 0;

	OK(cuGetExportTable((const void **)&table, id));
	CHECK(((int (*)(int, int))table[1])(3, 4) == 7);
	OK(cuGetExportTable((const void **)&again, id));
	CHECK(again == table && ((int (*)(int, int))table[1])(5, 6) == 11);

	memcpy(id, (unsigned char[]){0xd4, 0x08, 0x20, 0x55}, 4);
	OK(cuGetExportTable((const void **)&table, id));
	OK(((int (*)(int, int *))table[1])(9, &result));
	CHECK(result == 9);

	memcpy(id, (unsigned char[]){0xc6, 0x93, 0x33, 0x6e}, 4);
	OK(cuGetExportTable((const void **)&table, id));
	OK(((int (*)(void *, void *, void *, void *))table[0])(
		NULL, NULL, (void *)77, destroy));
	OK(((int (*)(void *, void *))table[1])(NULL, NULL));
	CHECK(destroyed == 1);

	memset(id, 0x99, 16);
	OK(cuGetExportTable((const void **)&table, id));
	for (int i = 0; i < 2; i++)
		CHECK(((int (*)(int, int))table[1])(3, 4) == 12);
	memset(id, 0x98, 16);
	CHECK_RESULT(cuGetExportTable((const void **)&table, id), is_split() ? 500 : 0);
	/* CUPTI asks again each time it is called. */
	for (int i = 0; i < 3; i++)
		CHECK_RESULT(cuGetExportTable((const void **)&table, profilers),
			is_split() ? 500 : 0);
	memset(id, 0x11, 16);
	CHECK_RESULT(cuGetExportTable((const void **)&table, id), 500);
}

int main(void)
{
	set_up();
	versions();
	tables();
	printf("done\n");
	return wrong != 0;
}
