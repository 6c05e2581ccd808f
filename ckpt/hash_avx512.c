/*
 * hash_avx512.c - the functions of hash_body.inc, compiled for AVX-512.
 */
#define XXH_VECTOR   3 /* XXH_AVX512 */
#define HASH_VARIANT hash_avx512
#define HASH_FEATURE "avx512f"
#include "ckpt/hash_body.inc"
