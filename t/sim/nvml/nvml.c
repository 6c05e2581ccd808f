/* A management library, as far as a test needs it; hostile as the driver is. */
#include <string.h>

#include "t/sim/sim.h"

static __thread int calls;
static int initialised, asked_for;
static unsigned init_flags;

SIM_EXPORT int nvmlInit_v2(void);
SIM_EXPORT int nvmlInitWithFlags(unsigned flags);
SIM_EXPORT int nvmlDeviceGetMinorNumber(void *device, unsigned *number);
SIM_EXPORT int nvmlDeviceGetCount_v2(unsigned *count);
SIM_EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device);
SIM_EXPORT int nvmlDeviceGetName(void *device, char *name, unsigned length);

int nvmlInit_v2(void)
{
	SIM_ENTER();
	initialised++;
	return 0;
}

int nvmlInitWithFlags(unsigned flags)
{
	SIM_ENTER();
	if (!initialised++)
		init_flags = flags;
	return 0;
}

/* Not what it says; but it tells. */
int nvmlDeviceGetMinorNumber(void *device, unsigned *number)
{
	SIM_ENTER();
	*number = init_flags;
	return 0;
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
	SIM_ENTER();
	calls++;
	*count = 1;
	return initialised ? 0 : 1;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
	SIM_ENTER();
	*device = &initialised;
	asked_for = 1;
	return index ? 2 : 0;
}

int nvmlDeviceGetName(void *device, char *name, unsigned length)
{
	SIM_ENTER();
	if (device != &initialised)
		sim_hostile("a device that is none", __func__);
	if (!asked_for) /* as with the real one */
		return 2;
	strncpy(name, calls <= 1 ? "Simulated" : "?", length);
	return 0;
}
