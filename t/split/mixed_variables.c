/*
 * mixed_variables ORDER...: modules whose text declares ordinary variables (o) and managed ones (m) in that
 * order, each as large as a range of the driver's addresses: over restarts all are where they were,
 * whichever the driver allocates first. Also for a real GPU.
 */
#include <string.h>

#include "t/split/driver_victim.h"

#define SIZE    (31 * MIB)
#define MOST    8
#define MODULES 4

static struct module {
	void *handle;
	const char *order;
	CUdeviceptr variables[MOST];
} modules[MODULES];

static char *copy;

void victim_hurt(void)
{
	cuMemsetD8_v2(modules[0].variables[1], 1, 1);
}

static void load(struct module *m)
{
	char text[2048], *at = text;

	at += sprintf(at, ".version 7.0\n.target sm_52\n.address_size 64\n");
	for (int i = 0; m->order[i]; i++)
		at += sprintf(at, ".visible .global %s.align 4 .b8 v%d[%lu];\n",
			m->order[i] == 'm' ? ".attribute(.managed) " : "", i, SIZE);
	WORKS(cuModuleLoadData(&m->handle, text));
}

static CUdeviceptr find(const struct module *m, int i)
{
	CUdeviceptr address = 0;
	char name[8];
	size_t size;

	sprintf(name, "v%d", i);
	OK(cuModuleGetGlobal_v2(&address, &size, m->handle, name));
	return address;
}

static void check(const struct module *m, int seed)
{
	for (int i = 0; m->order[i]; i++) {
		CUdeviceptr address = find(m, i);

		CHECK(address == m->variables[i], "variable %d of %s is at %#lx, not %#lx", i,
			m->order, address, m->variables[i]);
		OK(cuMemcpyDtoH_v2(copy, address, SIZE));
		SAME(copy, SIZE, seed + i, "a variable");
	}
}

int main(int argc, char **argv)
{
	void *context;

	copy = malloc(SIZE);
	WORKS(cuInit(0));
	WORKS(cuDevicePrimaryCtxRetain(&context, 0));
	WORKS(cuCtxSetCurrent(context));
	MUST(argc > 1 && argc <= 1 + MODULES);
	for (int n = 0; n < argc - 1; n++) {
		struct module *m = &modules[n];

		m->order = argv[n + 1];
		MUST(strlen(m->order) <= MOST);
		load(m);
		for (int i = 0; m->order[i]; i++) {
			m->variables[i] = find(m, i);
			victim_fill(copy, SIZE, MOST * n + i);
			WORKS(cuMemcpyHtoD_v2(m->variables[i], copy, SIZE));
		}
	}
	victim_ready();
	victim_wait();
	for (int n = 0; n < argc - 1; n++)
		check(&modules[n], MOST * n);
	return victim_done();
}
