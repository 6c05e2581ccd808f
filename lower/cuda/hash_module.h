/*
 * hash_module.h - the kernel that hashes blocks of device memory (hash_kernel.cu), for the
 * current context. It is there for one order at a time: what the program finds afterwards is as it was.
 */
#ifndef LOWER_CUDA_HASH_MODULE_H
#define LOWER_CUDA_HASH_MODULE_H

#include <stdint.h>

struct hash_module {
	void *module, *function;
};

/* On @device, which has the current context. 0, or the driver's result. */
int hash_module_load(struct hash_module *m, unsigned device);
void hash_module_unload(struct hash_module *m);

/* Have the hashes of @count blocks from @address on written to @hashes, memory of the device, or of the host as the
 * device sees it. Not waited for. 0, or the driver's result. */
int hash_module_launch(
	const struct hash_module *m, uint64_t address, uint64_t count, uint64_t hashes);

#endif
