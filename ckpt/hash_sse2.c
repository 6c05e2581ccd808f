/*
 * hash_sse2.c - the functions of hash_body.inc, compiled for SSE2.
 */
#define XXH_VECTOR   1 /* XXH_SSE2 */
#define HASH_VARIANT hash_sse2
#define HASH_FEATURE "sse2"
#include "ckpt/hash_body.inc"
