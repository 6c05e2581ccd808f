/*
 * call_info.h - what a call's parameters are, for whoever prints or replays it: made from the
 * API table by `gen printer`. The numbers are those of stubs/gen/api.h's enums.
 */
#ifndef STUBS_CALL_INFO_H
#define STUBS_CALL_INFO_H

#include <stddef.h>

#define CALL_MAX_PARAMS 24

struct call_param {
	const char *name;
	const char *type; /* C type, or what the handle stands for */
	int kind;         /* enum api_kind */
	unsigned size;    /* of what a pointer points to, or of the value */
	unsigned stars;
	int direction;   /* enum api_direction */
	int length_kind; /* enum api_length */
	unsigned length;
};

struct call_info {
	const char *name;
	const char *class;
	unsigned param_count;
	struct call_param params[CALL_MAX_PARAMS];
};

#endif
