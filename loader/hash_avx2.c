/*
 * hash_avx2.c - the functions of hash_body.inc, compiled for AVX2.
 */
#define XXH_VECTOR 2 /* XXH_AVX2 */
#define CHECK      loader_check_avx2
#include "loader/hash_body.inc"
