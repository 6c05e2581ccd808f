/*
 * Objects that are made and destroyed, and do nothing in between: green contexts, callbacks. They go with
 * nothing else.
 */
#include "t/sim/object.h"
#include "t/sim/sim.h"

SIM_EXPORT int cuDevResourceGenerateDesc(
	void **description, const void *resources, unsigned count);
SIM_EXPORT int cuGreenCtxCreate(void **green, void *description, int device, unsigned flags);
SIM_EXPORT int cuGreenCtxStreamCreate(void **stream, void *green, unsigned flags, int priority);
SIM_EXPORT int cuGreenCtxDestroy(void *green);
SIM_EXPORT int cuDeviceRegisterAsyncNotification(
	int device, void *function, void *data, void **handle);
SIM_EXPORT int cuDeviceUnregisterAsyncNotification(int device, void *handle);
SIM_EXPORT int cuLogsRegisterCallback(void *function, void *data, void **handle);
SIM_EXPORT int cuLogsUnregisterCallback(void *handle);
int cuStreamCreateWithPriority(void **stream, unsigned flags, int priority);

static int make_thing(void **out, enum object_kind kind)
{
	*out = object_new(kind, sizeof(struct object));
	return *out ? 0 : SIM_OUT_OF_MEMORY;
}

static int destroy(enum object_kind kind, void *handle, const char *function)
{
	struct object *o = object_get(kind, handle, function);

	if (!o)
		return SIM_INVALID_HANDLE;
	object_free(o);
	return 0;
}

#define DESTROY(name, kind)                                                                    \
	int name(void *handle)                                                                 \
	{                                                                                      \
		SIM_ENTER();                                                                   \
		return destroy(kind, handle, __func__);                                        \
	}
DESTROY(cuGreenCtxDestroy, OBJECT_GREEN_CONTEXT)
DESTROY(cuLogsUnregisterCallback, OBJECT_LOG_CALLBACK)

/* ---- parts of devices ---- */

int cuDevResourceGenerateDesc(void **description, const void *resources, unsigned count)
{
	SIM_ENTER();
	return make_thing(description, OBJECT_DESCRIPTION);
}

int cuGreenCtxCreate(void **green, void *description, int device, unsigned flags)
{
	SIM_ENTER();
	if (!object_get(OBJECT_DESCRIPTION, description, __func__))
		return SIM_INVALID_VALUE;
	return make_thing(green, OBJECT_GREEN_CONTEXT);
}

/* Continues without its green context, detached. */
int cuGreenCtxStreamCreate(void **stream, void *green, unsigned flags, int priority)
{
	SIM_ENTER();
	if (!object_get(OBJECT_GREEN_CONTEXT, green, __func__))
		return SIM_INVALID_VALUE;
	return cuStreamCreateWithPriority(stream, flags, priority);
}

/* ---- callbacks ---- */

int cuDeviceRegisterAsyncNotification(int device, void *function, void *data, void **handle)
{
	SIM_ENTER();
	return make_thing(handle, OBJECT_NOTIFICATION);
}

int cuDeviceUnregisterAsyncNotification(int device, void *handle)
{
	SIM_ENTER();
	return destroy(OBJECT_NOTIFICATION, handle, __func__);
}

int cuLogsRegisterCallback(void *function, void *data, void **handle)
{
	SIM_ENTER();
	return make_thing(handle, OBJECT_LOG_CALLBACK);
}
