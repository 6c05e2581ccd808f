/*
 * call_info.h - what a call's parameters are, for code that keeps records of calls, makes them
 * again or prints them: made from the API table by `gen info`.
 */
#ifndef SHARED_CALL_INFO_H
#define SHARED_CALL_INFO_H

#include <stdint.h>

#include "shared/api_kinds.h"

struct call_param {
	const char *name;
	const char *type; /* C type without its stars */
	uint32_t object;  /* enum cuda_kind of a tracked handle, else 0 */
	uint32_t size;    /* of the type: of what a pointer leads to, or of the value */
	uint8_t kind;     /* enum api_kind */
	uint8_t holding;  /* enum api_holding */
	uint8_t direction, stars;
	uint8_t length_kind, length;
	uint8_t word; /* of the arguments: six for registers, then the stack's */
};

struct call_info {
	const char *name;
	const struct call_param *params;
	uint8_t class; /* enum api_class */
	uint8_t way;   /* enum api_way */
	uint8_t param_count;
	int8_t value; /* struct api_call */
	uint8_t on_context, loses, again, counted;
};

/* What a call was entered with, at its word in @arguments. */
static inline void call_take_arguments(const struct call_info *info,
	const uint64_t registers[6], const uint64_t *stack, uint64_t *arguments)
{
	for (unsigned i = 0; i < info->param_count; i++) {
		unsigned word = info->params[i].word;

		arguments[word] = word < 6 ? registers[word] : stack[word - 6];
	}
}

#endif
