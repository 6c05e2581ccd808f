/*
 * crossing.h - what stubs of libraries build on (libtrecr-crossing.so): calls from the upper
 * half into the lower one. doc/split-process.md tells the way of a call.
 *
 * A stub has a table of real addresses, one entry point per function (stubs/gen/entries.c),
 * and one struct crossing_library. Nothing happens until the first call.
 */
#ifndef STUBS_CROSSING_CROSSING_H
#define STUBS_CROSSING_CROSSING_H

#include <stdint.h>

#include "shared/table.h"

struct crossing_library {
	struct lower_library lower;
	/* Where the stub's entry points jump to: the stub's own first-call code until the
	 * library is there, then crossing(). */
	void (**cross)(void);
	void (*first)(void);
	/* Where entry points with a body jump to: crossing_guard(), until crossing_end(). */
	void (**guard)(void);
	/* Where all of them jump to after that, and its result. */
	void (*ended)(void);
	int *ended_result;
	unsigned long target_count;
	/* Addresses of code that leads to the targets, as entry points hand it to crossing().
	 */
	void *const *words, *const *words_end;
	const unsigned *word_calls; /* the function of each, its number in the API table */
	/* Result of calls that cannot be made: in a child of fork(2) whose parent had used the
	 * library, or when there is no lower half. */
	int error;
	int complained;
	/* The program holds addresses in the library: it must come back where it was; */
	int fixed;
	/* or, where it is another build, where nothing is that the program holds the address of: 0, there
	 * is no such place. */
	uintptr_t (*another_place)(const struct crossing_library *library);
	/* After a restart, when the library is there again: upper code on a thread without
	 * storage of its own, so nothing of the libc and nothing thread-local. May be NULL. 0,
	 * or -1 with the reason in RECORDS->failure. */
	int (*restarted)(struct crossing_library *library);
	/* Whose ABI its programs have (enum mpi_abi): a restart may load a library of another one, which
	 * lower.soname then names. 0: of nobody else's. */
	unsigned abi;
	const char *found; /* what ld.so had found for the program */
	int openmpi;       /* when it was first loaded: it has Open MPI's ABI */
	/* At the first call of all, when the records are there. May be NULL. */
	void (*opened)(void);
	/* What device code prints comes out of some of its calls, and has a place among what the
	 * program prints: whether it comes out of that function. NULL: there is no device. */
	int (*flushes)(unsigned index);
	struct crossing_library *next;
};

/* Assembly; r11 is the address of the slot with the real address, all else as the caller of the
 * function set it. */
void crossing(void);
/* The same for a function with callbacks: eax says which arguments they are (below 6), a bit
 * each, r10 the address of the library's `cross`. */
void crossing_callback(void);
/* Enter a body of the upper half, at r11, such that the thread is not stopped for a checkpoint
 * before it returns; between crossings it may hold what is the lower half's. All else as the
 * caller of the function set it. */
void crossing_guard(void);
/* For crossing_library.first: r10 is the library. */
void crossing_open(void);

/* Libraries of the lower half see the environment as the program has it now. */
void crossing_environment(void);
/* The launcher's connection (PMI_FD) is the lower half's from now on. */
void crossing_connection(void);
/* The program exits: what libraries of the lower half do then about the launcher's connection. */
void crossing_exit(void);
/* Send @question, a line of less than LOWER_QUESTION bytes, to the supervisor of this process. 0: it says yes; 1: no; -1: it
 * does not say, or there is none. Waits until it knows. */
int crossing_ask_supervisor(const char *question);
/* From now on other processes may ask this one, by @name, for what it shares (shared/share.h). 0 or
 * -1. */
int crossing_share(const uint8_t name[SHARE_NAME]);
/* Ask the owner of request->handle. 0, or -1 where it does not answer; *@fd is in the lower half, for
 * the caller to close, -1: none. */
int crossing_fetch(const struct share_request *request, struct share_reply *reply, int *fd);
/* From now on calls of @library by name are not made and give @result, as a library's do that has
 * been shut down at exit. What it holds stays as it is. */
void crossing_end(struct crossing_library *library, int result);
/* From now on a child of fork(2) gets errors and no lower half of its own. */
void crossing_used(void);

/* A function pointer of the upper half, as the lower half may call it from any thread. Up to
 * six integer arguments and an integer result. The same function gives the same pointer. NULL
 * stays NULL. */
void *crossing_callback_pointer(void *function);
/* And back: what crossing_callback_pointer was given, or @pointer itself. */
void *crossing_callback_function(void *pointer);

/* A function of @library that has no name (it came in a table), as the upper half may call it.
 * NULL when there is no more room. */
void *crossing_function(void *real);
/* The word that leads from there to what crossing_function() was given. */
void **crossing_function_word(void *thunk);

/* In a guarded body: this thread's CROSSING_WORDS words, at THREAD_WORDS of its record; 0 in a
 * new thread and in a child of fork. NULL when the body was entered while another call of the
 * thread is under way, by a signal handler or a callback. */
uint64_t *crossing_thread_words(void);

/* A word of this thread for the library that it is in, behind the crossing and before it. (Behind it, thread-local
 * storage is the lower half's.) 0 in a new thread. */
uint64_t *crossing_thread_told(void);

/* @size bytes of the records arena (shared/records.h), zeroed, aligned to 16. NULL: no memory.
 * There is an arena in a guarded body. */
void *records_alloc(uint64_t size);

/* Where @library lies in the lower half; 0 when it is not loaded. */
int crossing_within(const struct crossing_library *library, const void *address);

/* "trecr: NAME: WHAT" on standard error, once a call site. */
void crossing_complain(const char *name, const char *what);

#endif
