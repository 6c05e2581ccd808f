/* hash_keys.h - what hash_kernel.cu is given beside blocks: words of XXH3's secret. */
#ifndef LOWER_CUDA_HASH_KEYS_H
#define LOWER_CUDA_HASH_KEYS_H

struct hash_keys {
	unsigned long long stripe[24]; /* for stripes, and for scrambling behind them */
	unsigned long long last[8];    /* for the last stripe of all */
	unsigned long long low[8];     /* for the halves of the hash */
	unsigned long long high[8];
};

void hash_keys_make(struct hash_keys *keys);

#endif
