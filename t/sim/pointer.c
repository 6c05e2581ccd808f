/* What the driver says of a pointer. */
#include <string.h>

#include "t/sim/device.h"
#include "t/sim/memory.h"
#include "t/sim/sim.h"

SIM_EXPORT int cuPointerGetAttribute(void *data, int attribute, uint64_t address);
SIM_EXPORT int cuPointerGetAttributes(
	unsigned count, const int *attributes, void **data, uint64_t address);
SIM_EXPORT int cuPointerSetAttribute(const void *value, int attribute, uint64_t address);

static bool on_host(const struct range *r)
{
	return r->kind == PINNED || r->kind == REGISTERED;
}

/* Bytes written; 0: the attribute is not one of it. */
static size_t get(const struct range *r, int attribute, uint64_t address, void *data)
{
	bool host = on_host(r), both = host || r->kind == MANAGED;
	uint64_t value;
	size_t size = 8;

	switch (attribute) {
	case 1:
		value = r->kind == MAPPED || r->kind == POOLED ? 0 : (uint64_t)r->context;
		break;
	case 2:
		value = host ? 1 : 2;
		size = 4;
		break;
	case 3:
		value = address;
		break;
	case 4:
		if (!both)
			return 0;
		value = address;
		break;
	case 6:
		value = !host;
		size = 1;
		break;
	case 7:
		value = r->id;
		break;
	case 8:
		value = r->kind == MANAGED;
		size = 1;
		break;
	case 9:
		value = 0;
		size = 4;
		break;
	case 11:
		value = r->start;
		break;
	case 12:
		value = r->size;
		break;
	case 13:
		value = 1;
		size = 1;
		break;
	case 16:
		value = 3;
		size = 4;
		break;
	case 17:
		value = (uint64_t)r->pool;
		break;
	default:
		return 0;
	}
	memcpy(data, &value, size);
	return size;
}

int cuPointerGetAttribute(void *data, int attribute, uint64_t address)
{
	struct range *r;
	size_t n = 0;

	SIM_ENTER();
	ranges_lock();
	r = range_memory(address);
	if (r)
		n = get(r, attribute, address, data);
	ranges_unlock();
	return n ? 0 : SIM_INVALID_VALUE;
}

static void nothing(int attribute, uint64_t address, void *data)
{
	int none = -2;

	switch (attribute) {
	case 1:
	case 3:
		memset(data, 0, 8);
		break;
	case 2:
		memset(data, 0, 4);
		break;
	case 4:
		memcpy(data, &address, 8);
		break;
	case 8:
		memset(data, 0, 1);
		break;
	case 9:
		memcpy(data, &none, 4);
		break;
	}
}

int cuPointerGetAttributes(unsigned count, const int *attributes, void **data, uint64_t address)
{
	struct range *r;

	SIM_ENTER();
	ranges_lock();
	r = range_memory(address);
	for (unsigned i = 0; i < count; i++) {
		if (!r)
			nothing(attributes[i], address, data[i]);
		else if (!get(r, attributes[i], address, data[i]) && attributes[i] == 4)
			memset(data[i], 0, 8);
	}
	ranges_unlock();
	return 0;
}

int cuPointerSetAttribute(const void *value, int attribute, uint64_t address)
{
	struct range *r;

	SIM_ENTER();
	ranges_lock();
	r = range_memory(address);
	ranges_unlock();
	if (attribute != 6 || !r)
		return SIM_INVALID_VALUE;
	return r->kind == MAPPED ? SIM_NOT_SUPPORTED : 0;
}
