/*
 * calls.c - walks over the parameters that a struct call_info describes, and finds sizes and
 * handles in them.
 */
#include "shared/cuda/calls.h"

#include <stddef.h>

#include "shared/cuda/cuda_state.h"
#include "shared/address_windows.h"

const struct call_param *call_out(const struct call_info *info)
{
	for (unsigned i = 0; i < info->param_count; i++) {
		const struct call_param *p = &info->params[i];

		if (p->stars && p->holding && p->direction == API_OUT)
			return p;
	}
	return NULL;
}

const struct call_param *call_first_handle(const struct call_info *info)
{
	for (unsigned i = 0; i < info->param_count; i++)
		if (!info->params[i].stars && info->params[i].holding)
			return &info->params[i];
	return NULL;
}

/* Arguments narrower than a word may have anything in the rest of it. */
static uint64_t argument_value(const struct call_param *p, const uint64_t *arguments)
{
	uint64_t word = arguments[p->word];

	return p->size < 8 ? word & ((1ul << p->size * 8) - 1) : word;
}

uint64_t call_bytes(
	const struct call_info *info, const struct call_param *p, const uint64_t *arguments)
{
	uint64_t each = p->stars > 1 ? sizeof(void *) : p->size ? p->size : 1, count = 0;
	const struct call_param *length = &info->params[p->length];
	const char *text = (const char *)arguments[p->word];

	if (p->direction == API_STRING) {
		while (text[count])
			count++;
		return count + 1;
	}
	switch ((enum api_length)p->length_kind) {
	case API_ONE:
		return each;
	case API_CONSTANT:
		return each * p->length;
	case API_PARAMETER:
		return each * argument_value(length, arguments);
	case API_DEREFERENCED:
		return arguments[length->word] ? each * *(uint64_t *)arguments[length->word]
					       : 0;
	case API_LENGTH_UNKNOWN:
	case API_IMAGE:
	case API_ELEMENTS:
	case API_RANKS:
	case API_MEMBERS:
	case API_SOURCES:
	case API_DESTINATIONS:
		break;
	}
	return 0;
}

int call_lower(const struct call_info *info, const uint64_t *arguments, uint64_t *lowered)
{
	for (unsigned i = 0; i < CALL_WORDS; i++)
		lowered[i] = arguments[i];
	for (unsigned i = 0; i < info->param_count; i++) {
		const struct call_param *p = &info->params[i];

		if (p->stars || p->holding != API_VIRTUAL ||
			!in_records_window(arguments[p->word]))
			continue;
		lowered[p->word] = (uint64_t)((struct object *)arguments[p->word])->real;
		if (lowered[p->word] & CUDA_DEAD)
			return -1;
	}
	return 0;
}
