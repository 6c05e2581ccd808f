/*
 * abi.h - another ABI of the same API, as read from stubs/api/NAME.abi (its head says what it means): what differs
 * from the one that the API table describes.
 */
#ifndef STUBS_GEN_ABI_H
#define STUBS_GEN_ABI_H

#include "stubs/gen/api.h"

enum abi_list_kind {
	ABI_CALLS,
	ABI_BY_HAND,
	ABI_RENAMED,         /* `of` is the API's name, the one word the ABI's */
	ABI_EXCHANGED,       /* types */
	ABI_PARAMETERS,      /* `of` is a class of values, words are names of parameters */
	ABI_POINTERS,        /* the same, of addresses */
	ABI_NUMBERS,         /* handle types that are ints in C, too */
	ABI_FORTRAN_BY_HAND, /* functions for Fortran that are not generated */
	ABI_C_ONLY,          /* those that Fortran has not */
	ABI_INDEXES, /* `of` is a parameter that Fortran counts from 1, words are functions */
	ABI_LISTS,
};

struct abi_list {
	enum abi_list_kind kind;
	char *of;
	char **words;
	size_t count;
};

/* A constant, as it is in the API table's ABI and in this one. */
struct abi_value {
	char class[32], name[64];
	int theirs, own;
	bool flag; /* a bit, of several that may be set */
};

/* A predefined object: its handle is the address of @symbol, of @size bytes. */
struct abi_object {
	char type[32], symbol[64], name[64]; /* name: "-" if it has none */
	unsigned size, theirs;
	int fortran;
};

/* What a type has in this ABI. */
struct abi_size {
	char type[32];
	unsigned bytes;
};

struct abi {
	struct abi_list *lists;
	size_t list_count;
	struct abi_value *values;
	size_t value_count;
	struct abi_object *objects;
	size_t object_count;
	struct abi_size *sizes;
	size_t size_count;
};

/* As api_read(). */
int abi_read(struct abi *abi, const char *path, struct err *e);

/* The list of @kind that has @word; NULL: none. */
const struct abi_list *abi_find(
	const struct abi *abi, enum abi_list_kind kind, const char *word);
/* The list of @kind that is of @of; NULL: none. */
const struct abi_list *abi_list_of(
	const struct abi *abi, enum abi_list_kind kind, const char *of);

/* The outputs: functions that exchange arguments; those of large counts; those for Fortran; objects and constants; and
 * what compares them with either header. */
int gen_adapter(const struct api *api, const struct abi *abi, FILE *out, struct err *e);
int gen_narrowed(const struct api *api, const struct abi *abi, FILE *out, struct err *e);
int gen_fortran(const struct api *api, const struct abi *abi, FILE *out, struct err *e);
int gen_constants(const struct api *api, const struct abi *abi, FILE *out, struct err *e);
int gen_check_own(const struct api *api, const struct abi *abi, FILE *out, struct err *e);
int gen_check_theirs(const struct api *api, const struct abi *abi, FILE *out, struct err *e);

#endif
