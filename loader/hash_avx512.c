#define XXH_VECTOR 3 /* XXH_AVX512 */
#define CHECK      loader_check_avx512
#include "loader/hash_body.inc"
