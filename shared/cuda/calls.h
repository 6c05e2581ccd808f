/*
 * calls.h - arguments of calls, as struct call_info describes them: what is made of them in
 * the upper half, when a record is kept, and in the lower half, when it is replayed. No libc.
 */
#ifndef SHARED_CUDA_CALLS_H
#define SHARED_CUDA_CALLS_H

#include "shared/call_info.h"

#define CALL_WORDS 16

/* A pointer as an argument, and all arguments of a call as an array: those not given are 0. */
#define WORD(pointer) ((uint64_t)(pointer))
#define WORDS(...)    ((const uint64_t[CALL_WORDS]){__VA_ARGS__})

/* The handle that a call gives out and that is kept track of, or NULL. */
const struct call_param *call_out(const struct call_info *info);
/* The first parameter that is a handle of a kind that is kept track of, or NULL. */
const struct call_param *call_first_handle(const struct call_info *info);
/* Bytes that pointer @p of a call with @arguments leads to; 0 when the table cannot tell. */
uint64_t call_bytes(
	const struct call_info *info, const struct call_param *p, const uint64_t *arguments);
/* @arguments with real handles for virtual ones. 0, or -1: one of them is dead. */
int call_lower(const struct call_info *info, const uint64_t *arguments, uint64_t *lowered);

#endif
