/*
 * sim.h - a driver for machines without a GPU: libcuda.so.1 with device memory at real
 * addresses, streams that work on threads of their own, modules whose kernels are functions of
 * its own, and handles that differ from process to process.
 *
 * It is hostile: each entry checks that it is called on the thread-local storage of the libc it
 * is linked with, and that handles and device pointers are ones it gave out; what is wrong ends
 * the process with a message. SIM_FAIL=FUNCTION:N:RESULT makes the Nth call of a function fail,
 * or end the process by signal -RESULT; the same from the file named by SIM_FAIL_FILE, as soon
 * as that is there, for as long as it says the same. FUNCTION may be *, for any of them.
 * The file named by SIM_MACHINE_FILE says what this machine is like: lines KEY VALUE (see uses
 * of sim_machine).
 */
#ifndef T_SIM_SIM_H
#define T_SIM_SIM_H

#include <stddef.h>
#include <stdint.h>

#define SIM_TOTAL_MEMORY (8ul << 30)

#define SIM_EXPORT __attribute__((visibility("default")))

enum {
	SIM_OK = 0,
	SIM_INVALID_VALUE = 1,
	SIM_OUT_OF_MEMORY = 2,
	SIM_NOT_INITIALIZED = 3,
	SIM_DEINITIALIZED = 4,
	SIM_INVALID_DEVICE = 101,
	SIM_INVALID_CONTEXT = 201,
	SIM_ALREADY_MAPPED = 208,
	SIM_LOSSY_QUERY = 223,
	SIM_INVALID_HANDLE = 400,
	SIM_NOT_FOUND = 500,
	SIM_NOT_READY = 600,
	SIM_PEER_ENABLED = 704,
	SIM_PEER_NOT_ENABLED = 705,
	SIM_CONTEXT_IS_DESTROYED = 709,
	SIM_ALREADY_REGISTERED = 712,
	SIM_NOT_REGISTERED = 713,
	SIM_NOT_SUPPORTED = 801,
};

/* First thing in every function of the API. Returns what SIM_FAIL says, or 0. */
int sim_enter(const char *function);
/* From a handler that is registered now for exit on, sim_enter() gives SIM_DEINITIALIZED. */
void sim_shut_down_at_exit(void);
/* What SIM_MACHINE_FILE says of @key, in static memory of the thread's; @standard if nothing.
 */
const char *sim_machine(const char *key, const char *standard);
/* "sim: WHAT" and the end. */
void sim_hostile(const char *what, const char *function) __attribute__((noreturn));

#define SIM_ENTER()                                                                            \
	do {                                                                                   \
		int fail_ = sim_enter(__func__);                                               \
		if (fail_)                                                                     \
			return fail_;                                                          \
	} while (0)

#endif
