/*
 * hash_sse2.c - the functions of hash_body.inc, compiled for SSE2.
 */
#define XXH_VECTOR 1 /* XXH_SSE2 */
#define CHECK      loader_check_sse2
#include "loader/hash_body.inc"
