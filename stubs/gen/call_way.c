/*
 * Which way a call takes through a stub (enum api_way): by a function written by hand, refused,
 * recorded, or passed on to the real library. It follows from the call's row in the table.
 */
#include "stubs/gen/api.h"

#include <string.h>

static bool is_handle(const struct api_param *p, enum api_holding holding)
{
	return p->type->kind == API_HANDLE && p->type->holding == holding;
}

/* A call makes objects when it gives out tracked handles, destroys those it is given, and
 * changes virtual ones; arrays of virtual handles must be exchanged whatever the call does. */
static bool is_recorded(const struct api_call *call)
{
	for (unsigned i = 0; i < call->param_count; i++) {
		const struct api_param *p = &call->params[i];
		bool tracked = p->type->kind == API_HANDLE && p->type->holding;

		if (p->stars && is_handle(p, API_VIRTUAL))
			return true;
		if (call->class == API_CREATE && tracked && p->stars)
			return true;
		if (call->class == API_CREATE && is_handle(p, API_VIRTUAL))
			return true;
		if (call->class == API_DESTROY && tracked)
			return true;
		if (call->class == API_STATE && is_handle(p, API_VIRTUAL))
			return true;
	}
	return call->on_context || call->loses;
}

/* What a call gives out or takes back: handles of which there are records, and others. */
static void gives_handles(const struct api_call *call, bool *tracked, bool *others)
{
	*tracked = *others = false;
	for (unsigned i = 0; i < call->param_count; i++) {
		const struct api_param *p = &call->params[i];

		if (p->type->kind == API_HANDLE && p->stars && p->direction != API_IN)
			*(p->type->holding == API_VIRTUAL ? tracked : others) = true;
	}
}

bool api_leaves(const struct api_call *call)
{
	bool tracked, others;

	if (call->saved || call->again || call->class == API_DATA)
		return false;
	gives_handles(call, &tracked, &others);
	if (call->leaves || others)
		return true;
	if (call->class == API_CREATE || call->class == API_DESTROY)
		return !tracked;
	/* When a collective call returns, the rank has done its part. */
	return call->class != API_PURE && call->class != API_COLLECTIVE &&
	       call->class != API_FILE;
}

bool api_is_counted(const struct api *api, const struct api_call *call)
{
	if (!api->counts || call->class != API_COLLECTIVE)
		return api->counts && call->counted;
	for (unsigned i = 0; i < call->param_count; i++)
		if (!call->params[i].stars && is_handle(&call->params[i], API_VIRTUAL) &&
			!strcmp(call->params[i].type->handle, "comm"))
			return true;
	return call->counted;
}

enum api_way api_way(const struct api_call *call)
{
	if (call->body)
		return API_BODY;
	if (call->open)
		return API_OPEN;
	if (call->inner_body)
		return API_INNER_BODY;
	if (call->class == API_UNSUPPORTED)
		return API_REFUSE;
	if (call->class == API_DATA)
		return API_VARIABLE;
	if (is_recorded(call))
		return API_RECORD;
	for (unsigned i = 0; i < call->param_count; i++)
		if (!call->params[i].stars && is_handle(&call->params[i], API_VIRTUAL))
			return API_TRANSLATE;
	return API_PASS;
}
