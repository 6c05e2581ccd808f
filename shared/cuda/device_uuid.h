/*
 * device_uuid.h - the identifier of a device, as nvidia-smi and CUDA_VISIBLE_DEVICES write it.
 */
#ifndef SHARED_CUDA_DEVICE_UUID_H
#define SHARED_CUDA_DEVICE_UUID_H

#include <stdint.h>
#include <string.h>

#define DEVICE_UUID_TEXT 41 /* "GPU-" or "MIG-", 32 digits, 4 hyphens, and the end */

/* @name: the device's. A part of a GPU has an identifier of its own, and says what it is in its name. */
static inline void device_uuid_text(
	const uint8_t uuid[16], const char *name, char text[DEVICE_UUID_TEXT])
{
	static const char digits[] = "0123456789abcdef";
	char *to = text;

	for (const char *prefix = strstr(name, " MIG ") ? "MIG-" : "GPU-"; *prefix; prefix++)
		*to++ = *prefix;
	for (int i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*to++ = '-';
		*to++ = digits[uuid[i] >> 4];
		*to++ = digits[uuid[i] & 15];
	}
	*to = 0;
}

#endif
