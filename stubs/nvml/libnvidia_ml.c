/* libnvidia-ml.so.1 of the upper half. All of it passes through: it would open the driver's
 * descriptors in the upper half otherwise. */
#include "shared/records.h"
#include "nvml.index.h"
#include "stubs/library.h"

enum {
	NVML_ERROR_UNINITIALIZED = 1,
	NVML_ERROR_FUNCTION_NOT_FOUND = 13,
};

STUB_LIBRARY(nvml, "libnvidia-ml.so.1", CALL_COUNT, NVML_ERROR_UNINITIALIZED,
	NVML_ERROR_FUNCTION_NOT_FOUND,
	/* Handles of devices are addresses in the library. */
	.fixed = 1);

/* How often it is initialised, and first with which flags, is all there is to be made again. */
#define REAL(name, parameters)                                                                 \
	extern STUB_HIDDEN int body_##name parameters, real_##name parameters
REAL(nvmlInit, (void));
REAL(nvmlInit_v2, (void));
REAL(nvmlInitWithFlags, (unsigned flags));
REAL(nvmlShutdown, (void));

static int note_initialised(int r, unsigned flags)
{
	if (!r && !__atomic_fetch_add(&RECORDS->nvml_initialised, 1, __ATOMIC_RELAXED))
		RECORDS->nvml_flags = flags;
	return r;
}

int body_nvmlInit(void)
{
	return note_initialised(real_nvmlInit(), 0);
}

int body_nvmlInit_v2(void)
{
	return note_initialised(real_nvmlInit_v2(), 0);
}

int body_nvmlInitWithFlags(unsigned flags)
{
	return note_initialised(real_nvmlInitWithFlags(flags), flags);
}

int body_nvmlShutdown(void)
{
	int r = real_nvmlShutdown();

	if (!r)
		__atomic_sub_fetch(&RECORDS->nvml_initialised, 1, __ATOMIC_RELAXED);
	return r;
}
