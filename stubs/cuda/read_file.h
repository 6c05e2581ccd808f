/* read_file.h - files that the program names to the driver. For use in guarded bodies. */
#ifndef STUBS_CUDA_READ_FILE_H
#define STUBS_CUDA_READ_FILE_H

#include <stdint.h>

#include "stubs/library.h"

struct whole_file {
	char *data; /* ended by 0, as text must be: block_free() it with @size + 1 */
	uint64_t size;
};

/* What is in it now. 0 or the driver's error. */
STUB_HIDDEN int read_file(const char *path, struct whole_file *file);

#endif
