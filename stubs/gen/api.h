/*
 * api.h - the table of an API, as read from stubs/api/NAME.api (its head says what it means).
 *
 * One parser, and one file per output: each reads struct api and prints a C or assembly file.
 * Names are tested nowhere in a generator; what is special about a call is an attribute.
 */
#ifndef STUBS_GEN_API_H
#define STUBS_GEN_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "lib/err.h"
#include "shared/api_kinds.h"

struct api_type {
	char *name;
	enum api_kind kind;
	unsigned size;
	char *handle; /* what a handle stands for, else NULL */
	enum api_holding holding;
};

struct api_param {
	char *name;
	char *declared; /* C type as written, "const void *" */
	const struct api_type *type;
	unsigned stars;
	enum api_direction direction;
	enum api_length length_kind;
	unsigned length;
	unsigned element; /* of API_ELEMENTS: the parameter that is the datatype */
};

#define API_MAX_PARAMS 24

/* One exported function. A row with a ptsz or ptds attribute makes two of them. */
struct api_call {
	char *name;      /* cuMemcpyHtoD_v2_ptds */
	char *proc;      /* cuMemcpyHtoD: what cuGetProcAddress calls it */
	unsigned since;  /* and from which version on; 0: never asked for so */
	bool per_thread; /* the variant for the per-thread default stream */
	enum api_class class;
	bool body;       /* by hand, in front of the crossing */
	bool inner_body; /* by hand, behind the crossing */
	bool open;       /* by hand, and a thread may be stopped in it */
	bool answered;   /* an entry point that may know the answer, in front of a body */
	bool on_context; /* what it changes is the current context */
	bool leaves;     /* pure, but something of the library's is left in the program */
	bool counted;    /* collective, though no class or parameter tells so */
	bool saved;      /* what it leaves behind is saved, if anything */
	bool again;      /* gives a request that is made again from the call's arguments */
	bool shared;     /* it uses the shared pointer of a file */
	bool loses;      /* after it, the objects it was about cannot be made again */
	bool flushes;    /* what device code has printed is out when it returns */
	bool internal;   /* in no header; of use to the library's own companions only */
	bool unchecked;  /* its prototype cannot be written as a row has it */
	bool variadic;
	const struct api_type *result; /* NULL: as the table says for all */
	int value; /* number of the parameter that a later call replaces, or -1 */
	struct api_param params[API_MAX_PARAMS];
	unsigned param_count;
};

struct api {
	char *library;  /* "cuda": prefix of what is generated */
	char *result;   /* C type of what functions return */
	char *version;  /* macro of the header that `since` is compared with, or NULL */
	char *profiled; /* each function has a second name with this in front, or NULL */
	bool counts;    /* collective calls are counted in front of all else */
	bool notes;     /* entry points note that they were called, if that leaves something */
	struct api_type *types;
	size_t type_count;
	struct api_call *calls;
	size_t call_count;
};

/* Read the table at @path; what it takes is never freed (a generator prints and ends). Errors
 * name the line. */
int api_read(struct api *api, const char *path, struct err *e);

const char *api_class_name(enum api_class class);
/* Numbers of the parameters that are callbacks, a bit each. */
unsigned api_callbacks(const struct api_call *call);
/* Names of parameters: the communicator, and the buffer that array number @index goes with, which is the last one before
 * it. "NULL": there is none. */
const char *api_communicator(const struct api_call *call);
const char *api_buffer_before(const struct api_call *call, unsigned index);

/* ---- call_way.c ---- */

enum api_way api_way(const struct api_call *call);

/* Something is behind after the call that is in no record. */
bool api_leaves(const struct api_call *call);

/* Collective, and counted for its communicator. */
bool api_is_counted(const struct api *api, const struct api_call *call);

/* Whether programs hold addresses of records for handles of this API. */
bool api_has_virtual(const struct api *api);

/* Where parameter number @index is when the function is entered, as the x86-64 ABI has it
 * (structures here hold no floating point numbers). */
struct api_place {
	enum { API_REGISTER, API_STACK, API_FLOAT_REGISTER } where;
	unsigned number; /* of the register, or of the 8-byte word behind the return address */
};
struct api_place api_place(const struct api_call *call, unsigned index);

/* The outputs. */
int gen_entries(const struct api *api, FILE *out, struct err *e);
int gen_versions(const struct api *api, FILE *out, struct err *e);
int gen_info(const struct api *api, FILE *out, struct err *e);
int gen_index(const struct api *api, FILE *out, struct err *e);
int gen_calls(const struct api *api, FILE *out, struct err *e);
int gen_check(const struct api *api, FILE *out, struct err *e);
int gen_names(const struct api *api, FILE *out, struct err *e);

#endif
