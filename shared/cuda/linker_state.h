/*
 * linker_state.h - what is kept of a linker state (CUlinkState) besides the calls that have made it and added
 * to it. In the records arena, as struct object.value of it.
 *
 * The driver writes results of options (sizes, times, what the compiler says) during any later call to
 * where cuLinkCreate() was told, and the program holds the address of the code that cuLinkComplete() gave. So the
 * driver is given memory of ours for all of that, which has the same addresses after a restart.
 */
#ifndef SHARED_CUDA_LINKER_STATE_H
#define SHARED_CUDA_LINKER_STATE_H

#include <stdint.h>

/* CU_JIT_INFO_LOG_BUFFER and CU_JIT_ERROR_LOG_BUFFER; the size of each is the option behind it. */
enum { LINKER_LOG_INFO = 3, LINKER_LOG_ERROR = 5, LINKER_LOGS = 2 };

struct linker_log {
	char *program; /* NULL: there is none */
	char *driver;  /* what the driver writes to */
	char *shown;   /* as of the last time that it was copied to the program's */
	uint64_t size;
};

/* Code that cuLinkComplete() has given. */
struct linker_code {
	struct linker_code *next;
	uint64_t size;
	char data[];
};

struct linker_state {
	struct linker_state *next; /* of several that end together */
	uint64_t bytes;            /* of this block */
	uint32_t count, is_complete;
	/* Options of cuLinkCreate() and, @count of each: the array that the driver writes to, the same as it
	 * was at first, as it was last copied to the program's, and the program's. */
	uint32_t *options;
	uint64_t *values, *given, *shown, *program;
	struct linker_log logs[LINKER_LOGS];
	struct linker_code *codes;
	void *result; /* of cuLinkComplete() */
	uint64_t result_size;
};

#endif
