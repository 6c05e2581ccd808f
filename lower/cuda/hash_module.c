/* hash_module.c - the code of the kernel, for each device, and its launch. */
#include "lower/cuda/hash_module.h"

#include <stdlib.h>
#include <string.h>

#include "lower/cuda/cuda.h"
#include "lower/cuda/hash_keys.h"
#include "lower/heap.h"

#define BLOCKS_A_GROUP 32ul /* GROUPS and THREADS of hash_kernel.cu */
#define THREADS        128u
#define MOST_GROUPS    4096ul

/* What the driver's compiler makes of text is cached, for each device. */
#define DEVICES 16
static struct code {
	void *data; /* NULL: none yet */
	int failed; /* and none is available */
} codes[DEVICES];

/* Made by mk/hash-kernel: text, for all devices, and what a compiler has made of it for one kind. */
extern const char hash_kernel_ptx[], hash_kernel_ptx_end[], hash_kernel_cubin[];
__asm__(".pushsection .rodata\n"
	"hash_kernel_ptx: .incbin \"lower/cuda/hash_kernel.ptx\"\n"
	".byte 0\n"
	"hash_kernel_ptx_end:\n"
	".balign 64\n"
	"hash_kernel_cubin: .incbin \"lower/cuda/hash_kernel.sm_90.cubin\"\n"
	".popsection");

static int add_text(void *linker)
{
	return CUDA(cuLinkAddData_v2, (void *, int, const void *, size_t, const char *,
					      unsigned, const int *, void **))(linker,
		1 /* CU_JIT_INPUT_PTX */, hash_kernel_ptx,
		hash_kernel_ptx_end - hash_kernel_ptx, "trecr", 0, NULL, NULL);
}

/* What comes out is the linker's. */
static int keep_code(struct code *code, const void *data, size_t size)
{
	code->data = malloc(size);
	if (code->data)
		memcpy(code->data, data, size);
	return code->data ? 0 : CUDA_MISSING;
}

static int compile_kernel(struct code *code)
{
	void *linker, *data;
	size_t size;
	int r;

	r = CUDA(cuLinkCreate_v2, (unsigned, const int *, void **, void **))(
		0, NULL, NULL, &linker);
	if (r)
		return r;
	r = add_text(linker);
	if (!r)
		r = CUDA(cuLinkComplete, (void *, void **, size_t *))(linker, &data, &size);
	if (!r)
		r = keep_code(code, data, size);
	CUDA(cuLinkDestroy, (void *))(linker); /* ours */
	code->failed = !!r;
	return r;
}

static int load_code(struct hash_module *m, const void *code)
{
	return CUDA(cuModuleLoadData, (void **, const void *))(&m->module, code);
}

/* Device by device, as they may be of several kinds. */
static int load_any(struct hash_module *m, struct code *code)
{
	int r;

	if (!code->data && !load_code(m, hash_kernel_cubin))
		return 0;
	r = code->data ? 0 : compile_kernel(code);
	return r ? r : load_code(m, code->data);
}

static int load_module(struct hash_module *m, struct code *code)
{
	int r = load_any(m, code);

	if (r)
		return r;
	r = CUDA(cuModuleGetFunction, (void **, void *, const char *))(
		&m->function, m->module, "trecr_hash_blocks");
	if (r)
		hash_module_unload(m);
	return r;
}

/* Where it cannot be compiled it is not tried again. */
int hash_module_load(struct hash_module *m, unsigned device)
{
	int r = CUDA_MISSING;

	if (device >= DEVICES || codes[device].failed)
		return r;
	heap_aside++;
	r = load_module(m, &codes[device]);
	heap_aside--;
	return r;
}

void hash_module_unload(struct hash_module *m)
{
	heap_aside++;
	CUDA(cuModuleUnload, (void *))(m->module); /* ours */
	heap_aside--;
}

int hash_module_launch(
	const struct hash_module *m, uint64_t address, uint64_t count, uint64_t hashes)
{
	unsigned long groups = (count + BLOCKS_A_GROUP - 1) / BLOCKS_A_GROUP;
	void *parameters[4] = {&address, &count, &hashes};
	struct hash_keys keys;

	hash_keys_make(&keys);
	parameters[3] = &keys;
	return CUDA(cuLaunchKernel, (void *, unsigned, unsigned, unsigned, unsigned, unsigned,
					    unsigned, unsigned, void *, void **, void **))(
		m->function, groups < MOST_GROUPS ? groups : MOST_GROUPS, 1, 1, THREADS, 1, 1,
		0, NULL, parameters, NULL);
}
