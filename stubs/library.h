/*
 * library.h - what every stub has: STUB_LIBRARY fills in the record of a library whose entry
 * points `gen entries` has made.
 */
#ifndef STUBS_LIBRARY_H
#define STUBS_LIBRARY_H

#include "stubs/crossing/crossing.h"

#define STUB_PATH_MAX 4096
#define STUB_HIDDEN   __attribute__((visibility("hidden")))

/*
 * @name: of the API table. @count: of its functions. @error: result of a call that cannot be
 * made (crossing_library.error). @missing: result of a function that the library of the lower
 * half does not have. Further members of struct crossing_library may follow. It is a macro because
 * it names symbols that `gen entries` has made for this library.
 */
#define STUB_LIBRARY(name, the_soname, count, the_error, the_missing, ...)                       \
	extern STUB_HIDDEN void *name##_targets[];                                               \
	extern STUB_HIDDEN void *const name##_words[], *const name##_words_end[];                \
	extern STUB_HIDDEN const unsigned name##_word_calls[];                                   \
	extern STUB_HIDDEN const char name##_names[];                                            \
	extern STUB_HIDDEN void (*name##_cross)(void);                                           \
	extern STUB_HIDDEN void (*name##_guard)(void);                                           \
	STUB_HIDDEN void name##_first(void);                                                     \
	STUB_HIDDEN void name##_missing(void);                                                   \
	STUB_HIDDEN void name##_ended(void);                                                     \
	STUB_HIDDEN int name##_ended_result = (the_error);                                       \
	extern STUB_HIDDEN const int name##_missing_result;                                      \
	extern STUB_HIDDEN struct crossing_library name##_library;                               \
	/* The path where ld.so found the real library, if stubs/audit has put us in its       \
	 * place; else what the lower half is to look for. */ \
	extern char trecr_##name##_found[STUB_PATH_MAX];                                         \
	char trecr_##name##_found[STUB_PATH_MAX] = (the_soname);                                 \
	const int name##_missing_result = (the_missing);                                         \
	struct crossing_library name##_library = {.lower = {.soname = trecr_##name##_found,      \
							  .names = name##_names,                 \
							  .targets = name##_targets,             \
							  .missing = name##_missing},            \
		.found = trecr_##name##_found,                                                   \
		.cross = &name##_cross,                                                          \
		.guard = &name##_guard,                                                          \
		.first = name##_first,                                                           \
		.ended = name##_ended,                                                           \
		.ended_result = &name##_ended_result,                                            \
		.target_count = (count),                                                         \
		.words = name##_words,                                                           \
		.words_end = name##_words_end,                                                   \
		.word_calls = name##_word_calls,                                                 \
		.error = (the_error),                                                            \
		__VA_ARGS__}

#endif
