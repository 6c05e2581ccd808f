/*
 * hash_avx512.c - the functions of hash_body.inc, compiled for AVX-512.
 */
#define XXH_VECTOR 3 /* XXH_AVX512 */
#define CHECK      loader_check_avx512
#include "loader/hash_body.inc"
