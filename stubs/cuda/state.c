/* The head of the records (cuda_state.h): what this process has of the driver. */
#include "shared/cuda/device_properties.h"
#include "stubs/cuda/memory.h"
#include "stubs/cuda/objects.h"

static int describe_device(struct cuda_device *d, int ordinal)
{
	size_t memory = 0;
	int device, r;

	r = real_cuDeviceGet(&device, ordinal);
	if (!r)
		r = real_cuDeviceGetName(d->name, sizeof(d->name), device);
	if (!r)
		r = real_cuDeviceGetUuid_v2(d->uuid, device);
	if (!r)
		r = real_cuDeviceTotalMem_v2(&memory, device);
	d->memory = memory;
	for (unsigned i = 0; i < DEVICE_PROPERTIES && !r; i++) {
		r = real_cuDeviceGetAttribute(
			&d->properties[i], device_properties[i].attribute, device);
		if (r == CUDA_ERROR_INVALID_VALUE)
			r = d->properties[i] = 0; /* a driver that does not know it */
	}
	return r;
}

static int opened; /* here or in an ancestor */

STUB_HIDDEN int state_usable(void)
{
	return opened && CUDA_STATE->magic == CUDA_STATE_MAGIC;
}

/* Two threads may come here: both write the same. */
STUB_HIDDEN int cuda_state_open(void)
{
	struct cuda_state *s = CUDA_STATE;
	int count = 0, version = 0, r;

	if (__atomic_load_n(&s->initialised, __ATOMIC_ACQUIRE))
		return 0;
	r = real_cuDriverGetVersion(&version);
	if (!r)
		r = real_cuDeviceGetCount(&count);
	for (int i = 0; i < count && i < CUDA_DEVICES && !r; i++)
		r = describe_device(&s->devices[i], i);
	if (r)
		return r;
	s->device_count = count < CUDA_DEVICES ? count : CUDA_DEVICES;
	s->driver_version = version;
	s->version = CUDA_STATE_VERSION;
	s->magic = CUDA_STATE_MAGIC;
	opened = 1;
	__atomic_store_n(&s->initialised, 1, __ATOMIC_RELEASE);
	return 0;
}
