/*
 * hash_avx2.c - the functions of hash_body.inc, compiled for AVX2.
 */
#define XXH_VECTOR   2 /* XXH_AVX2 */
#define HASH_VARIANT hash_avx2
#define HASH_FEATURE "avx2"
#include "ckpt/hash_body.inc"
