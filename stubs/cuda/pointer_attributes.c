/* What a program is told about a pointer into memory that we gave it, as the driver would. */
#include <string.h>

#include "shared/raw.h"
#include "stubs/cuda/memory.h"
#include "stubs/cuda/objects.h"
#include "stubs/cuda/sharing.h"

enum attribute {
	ATTRIBUTE_CONTEXT = 1,
	ATTRIBUTE_MEMORY_TYPE,
	ATTRIBUTE_DEVICE_POINTER,
	ATTRIBUTE_HOST_POINTER,
	ATTRIBUTE_SYNC_MEMOPS = 6,
	ATTRIBUTE_BUFFER_ID,
	ATTRIBUTE_IS_MANAGED,
	ATTRIBUTE_DEVICE_ORDINAL,
	ATTRIBUTE_RANGE_START_ADDR = 11,
	ATTRIBUTE_RANGE_SIZE,
	ATTRIBUTE_IPC_CAPABLE, /* CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE */
	ATTRIBUTE_HANDLE_TYPES,
	ATTRIBUTE_MEMPOOL_HANDLE = 17,
};

#define MEMORY_HOST   1
#define MEMORY_DEVICE 2

/* Bytes that the driver writes. */
static size_t attribute_size(int attribute)
{
	switch (attribute) {
	case ATTRIBUTE_CONTEXT:
	case ATTRIBUTE_DEVICE_POINTER:
	case ATTRIBUTE_HOST_POINTER:
	case ATTRIBUTE_BUFFER_ID:
	case ATTRIBUTE_RANGE_START_ADDR:
	case ATTRIBUTE_RANGE_SIZE:
	case ATTRIBUTE_MEMPOOL_HANDLE:
	case ATTRIBUTE_HANDLE_TYPES:
		return 8;
	case ATTRIBUTE_IPC_CAPABLE:
		return 1;
	case ATTRIBUTE_MEMORY_TYPE:
	case ATTRIBUTE_DEVICE_ORDINAL:
		return 4;
	}
	return 0; /* not ours to answer */
}

/* By cuIpcGetMemHandle. What is another process's is not to be shared on. */
static int is_shareable(const struct devmem_allocation *a)
{
	return !a->pool && devmem_part(a->address) < DEVMEM_DEVICES &&
	       memory_state()->shareable >> a->device & 1;
}

/* @a is a copy, NULL where nothing is. 0 or the error of cuPointerGetAttribute. */
static int value_of(
	const struct devmem_allocation *a, int attribute, uint64_t address, uint64_t *value)
{
	if (!a)
		return CUDA_ERROR_INVALID_VALUE;
	switch (attribute) {
	case ATTRIBUTE_CONTEXT:
		*value = a->pool ? 0 : (uint64_t)a->context;
		return 0;
	case ATTRIBUTE_MEMORY_TYPE:
		*value = a->device == DEVMEM_PINNED ? MEMORY_HOST : MEMORY_DEVICE;
		return 0;
	case ATTRIBUTE_DEVICE_POINTER:
		*value = address;
		return 0;
	case ATTRIBUTE_HOST_POINTER:
		*value = address;
		return a->device == DEVMEM_PINNED ? 0 : CUDA_ERROR_INVALID_VALUE;
	case ATTRIBUTE_BUFFER_ID:
		*value = a->id;
		return 0;
	case ATTRIBUTE_DEVICE_ORDINAL:
		*value = a->device;
		return 0;
	case ATTRIBUTE_RANGE_START_ADDR:
		*value = a->address;
		return 0;
	case ATTRIBUTE_RANGE_SIZE:
		*value = a->size;
		return 0;
	case ATTRIBUTE_MEMPOOL_HANDLE:
		*value = (uint64_t)a->pool;
		return 0;
	case ATTRIBUTE_IPC_CAPABLE:
		*value = is_shareable(a);
		return 0;
	case ATTRIBUTE_HANDLE_TYPES:
		*value = a->pool ? ((const struct memory_pool *)a->pool)->handle_types : 0;
		return 0;
	}
	return CUDA_ERROR_INVALID_VALUE;
}

/* 1: @address is in memory of another process; *@a is as if it were ours. */
static int look_up_imported(uint64_t address, struct devmem_allocation *a)
{
	struct memory_state *s = memory_lock(0);
	const struct memory_import *i = s ? import_find(s, address) : NULL;

	if (i)
		*a = (struct devmem_allocation){.address = i->address,
			.size = i->size,
			.id = i->id,
			.context = i->context,
			.pool = i->pool,
			.device = i->device};
	if (s)
		memory_unlock(s);
	return i != NULL;
}

/* 1: @address is ours; *@a what lies there, *@found 0 if nothing does. The program's own
 * reservations (cuMemAddressReserve) are not. */
static int look_up(uint64_t address, struct devmem_allocation *a, int *found)
{
	struct devmem_allocation *there;
	struct memory_state *s;

	if (devmem_part(address) == DEVMEM_PARTS)
		return *found = memory_state() && look_up_imported(address, a);
	s = memory_lock(0);
	if (!s)
		return 0;
	there = devmem_find(&s->devmem, address);
	*found = there != NULL;
	if (there)
		*a = *there;
	memory_unlock(s);
	return 1;
}

/* The ordinal of pinned memory is that of the context's device: only the driver knows. */
static int ask_driver(const struct devmem_allocation *a, int attribute)
{
	return a && (!attribute_size(attribute) || (attribute == ATTRIBUTE_DEVICE_ORDINAL &&
							   a->device == DEVMEM_PINNED));
}

int body_cuPointerGetAttribute(void *data, int attribute, uint64_t address)
{
	struct devmem_allocation copy, *a = &copy;
	uint64_t value = 0;
	int found, r;

	if (!data || !look_up(address, &copy, &found))
		return real_cuPointerGetAttribute(data, attribute, address);
	if (!found)
		a = NULL;
	if (ask_driver(a, attribute))
		return real_cuPointerGetAttribute(data, attribute, address);
	r = value_of(a, attribute, address, &value);
	if (!r)
		memcpy(data, &value, attribute_size(attribute));
	return r;
}

/* Where nothing is, the driver writes this; other attributes it leaves alone. */
static void write_nothing(void *data, int attribute, uint64_t address)
{
	static const int none = -2;
	uint64_t zero = 0;

	switch (attribute) {
	case ATTRIBUTE_CONTEXT:
	case ATTRIBUTE_DEVICE_POINTER:
		memcpy(data, &zero, 8);
		return;
	case ATTRIBUTE_HOST_POINTER:
		memcpy(data, &address, 8);
		return;
	case ATTRIBUTE_MEMORY_TYPE:
	case ATTRIBUTE_IS_MANAGED:
		memcpy(data, &zero, attribute == ATTRIBUTE_IS_MANAGED ? 1 : 4);
		return;
	case ATTRIBUTE_DEVICE_ORDINAL:
		memcpy(data, &none, 4);
		return;
	}
}

int body_cuPointerGetAttributes(
	unsigned count, const int *attributes, void **data, uint64_t address)
{
	struct devmem_allocation a;
	uint64_t value = 0;
	int found = 0, r;

	if (!look_up(address, &a, &found))
		return real_cuPointerGetAttributes(count, attributes, data, address);
	/* The driver sees to what is wrong with the call, and to what it knows better. */
	r = real_cuPointerGetAttributes(count, attributes, data, address);
	for (unsigned i = 0; !r && i < count; i++) {
		if (!found)
			write_nothing(data[i], attributes[i], address);
		else if (!ask_driver(&a, attributes[i]) &&
			 !value_of(&a, attributes[i], address, &value))
			memcpy(data[i], &value, attribute_size(attributes[i]));
	}
	return r;
}

/* All synchronous copies of memory as we map it wait: what the program may ask for is so. */
int body_cuPointerSetAttribute(const void *value, int attribute, uint64_t address)
{
	struct devmem_allocation a;
	int found, r;

	if (attribute != ATTRIBUTE_SYNC_MEMOPS || !look_up(address, &a, &found) || !found) {
		r = real_cuPointerSetAttribute(value, attribute, address);
		return r ? r : setting_lost(current_context(), CUDA_SETTING_MEMORY);
	}
	return value ? 0 : CUDA_ERROR_INVALID_VALUE;
}
