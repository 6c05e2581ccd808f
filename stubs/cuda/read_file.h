/* read_file.h - files that the program names to the driver. For use in guarded bodies. */
#ifndef STUBS_CUDA_READ_FILE_H
#define STUBS_CUDA_READ_FILE_H

#include <stdint.h>

#include "stubs/library.h"

struct whole_file {
	char *data; /* ended by 0, as text must be: block_free() it with @room */
	uint64_t size, room;
};

/* What is in it now, up to its end: of a pipe, what has come until nobody holds it for writing. 0 or the driver's error. */
STUB_HIDDEN int read_file(const char *path, struct whole_file *file);

#endif
