/*
 * Objects that are made and destroyed, and do nothing in between: linker
 * states, green contexts, callbacks. What goes with what is as in the real
 * driver: with a context goes what cuCtxDestroy() lists, with an array its parts, and nothing
 * else with anything.
 */
#include "t/sim/things.h"

#include <stdlib.h>
#include <string.h>

#include "t/sim/object.h"
#include "t/sim/sim.h"

struct thing {
	struct object object;
	void *context;       /* goes with it; NULL: with none */
	struct thing *whole; /* or with that */
	char *text;          /* a linker's */
	struct thing *next;
};

static struct thing *things;

SIM_EXPORT int cuLinkCreate_v2(
	unsigned count, const int *options, void **values, void **linker);
SIM_EXPORT int cuLinkAddData_v2(void *linker, int type, const void *data, size_t size,
	const char *name, unsigned count, const int *options, void **values);
SIM_EXPORT int cuLinkComplete(void *linker, void **image, size_t *size);
SIM_EXPORT int cuLinkDestroy(void *linker);
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
int cuCtxGetCurrent(void **context);

/* One thread at a time makes such things in the tests. */
static struct thing *make_thing(void **out, enum object_kind kind)
{
	struct thing *t = object_new(kind, sizeof(*t));

	if (t) {
		t->next = things;
		things = t;
	}
	*out = t;
	return t;
}

static int make_in_context(void **out, enum object_kind kind)
{
	void *context = NULL;
	struct thing *t;

	if (cuCtxGetCurrent(&context) || !context)
		return SIM_INVALID_CONTEXT;
	t = make_thing(out, kind);
	if (t)
		t->context = context;
	return t ? 0 : SIM_OUT_OF_MEMORY;
}

static int make_free(void **out, enum object_kind kind)
{
	return make_thing(out, kind) ? 0 : SIM_OUT_OF_MEMORY;
}

static struct thing **goes_with(const void *context, const struct thing *whole)
{
	struct thing **at = &things;

	while (*at && !(context && (*at)->context == context) &&
		!(whole && (*at)->whole == whole))
		at = &(*at)->next;
	return at;
}

static void end(struct thing *t)
{
	struct thing **at = &things;

	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	while (*(at = goes_with(NULL, t)))
		end(*at);
	free(t->text);
	object_free(t);
}

void things_context_gone(void *context)
{
	struct thing **at;

	while (*(at = goes_with(context, NULL)))
		end(*at);
}

static int destroy(enum object_kind kind, void *handle, const char *function)
{
	struct thing *t = object_get(kind, handle, function);

	if (!t || t->whole)
		return SIM_INVALID_HANDLE;
	end(t);
	return 0;
}

#define DESTROY(name, kind)                                                                    \
	int name(void *handle)                                                                 \
	{                                                                                      \
		SIM_ENTER();                                                                   \
		return destroy(kind, handle, __func__);                                        \
	}
DESTROY(cuLinkDestroy, OBJECT_LINKER)
DESTROY(cuGreenCtxDestroy, OBJECT_GREEN_CONTEXT)
DESTROY(cuLogsUnregisterCallback, OBJECT_LOG_CALLBACK)

int cuLinkCreate_v2(unsigned count, const int *options, void **values, void **linker)
{
	SIM_ENTER();
	return make_in_context(linker, OBJECT_LINKER);
}

/* One text is linked with nothing. */
int cuLinkAddData_v2(void *linker, int type, const void *data, size_t size, const char *name,
	unsigned count, const int *options, void **values)
{
	struct thing *t;

	SIM_ENTER();
	t = object_get(OBJECT_LINKER, linker, __func__);
	if (!t || t->text || type != 1 || !size || ((const char *)data)[size - 1])
		return t ? SIM_INVALID_VALUE : SIM_INVALID_HANDLE;
	t->text = strdup(data);
	return 0;
}

int cuLinkComplete(void *linker, void **image, size_t *size)
{
	struct thing *t;

	SIM_ENTER();
	t = object_get(OBJECT_LINKER, linker, __func__);
	if (!t || !t->text)
		return t ? SIM_INVALID_VALUE : SIM_INVALID_HANDLE;
	*image = t->text;
	*size = strlen(t->text) + 1;
	return 0;
}

/* ---- parts of devices ---- */

int cuDevResourceGenerateDesc(void **description, const void *resources, unsigned count)
{
	SIM_ENTER();
	return make_free(description, OBJECT_DESCRIPTION);
}

int cuGreenCtxCreate(void **green, void *description, int device, unsigned flags)
{
	SIM_ENTER();
	if (!object_get(OBJECT_DESCRIPTION, description, __func__))
		return SIM_INVALID_VALUE;
	return make_free(green, OBJECT_GREEN_CONTEXT);
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
	return make_free(handle, OBJECT_NOTIFICATION);
}

int cuDeviceUnregisterAsyncNotification(int device, void *handle)
{
	SIM_ENTER();
	return destroy(OBJECT_NOTIFICATION, handle, __func__);
}

int cuLogsRegisterCallback(void *function, void *data, void **handle)
{
	SIM_ENTER();
	return make_free(handle, OBJECT_LOG_CALLBACK);
}
