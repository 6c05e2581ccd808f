/*
 * objects.h - the living objects of this process (struct object of cuda_state.h), and how records of
 * calls are kept with them. For use in guarded bodies; safe in several threads and handlers.
 */
#ifndef STUBS_CUDA_OBJECTS_H
#define STUBS_CUDA_OBJECTS_H

#include "shared/call_info.h"
#include "shared/cuda/cuda_state.h"
#include "stubs/cuda/bodies.h"

extern STUB_HIDDEN const struct call_info cuda_info[];

/* The driver has been asked to make, change or destroy a context, whatever came of it. */
STUB_HIDDEN void query_cache_invalidate(void);

/* There are records: cuInit() has been called, and this is no child of fork(2). */
STUB_HIDDEN int state_usable(void);

/* @lock with all signals blocked: pass what it returns to guarded_unlock(). */
STUB_HIDDEN uint64_t guarded_lock(uint32_t *lock);
STUB_HIDDEN void guarded_unlock(uint32_t *lock, uint64_t mask);
/* The same with the arena's lock. */
STUB_HIDDEN uint64_t state_lock(void);
STUB_HIDDEN void state_unlock(uint64_t mask);

/* A zeroed block of the arena that is given back with its size. NULL: no memory. */
STUB_HIDDEN void *block_new(uint64_t size);
STUB_HIDDEN void block_free(void *block, uint64_t size);

/* An object that is not yet among the living; NULL: no memory. object_drop() if it is not to
 * be. */
STUB_HIDDEN struct object *object_new(enum cuda_kind kind, unsigned flags);
STUB_HIDDEN void object_drop(struct object *o);
/* A number higher than all before: the order that things are made in. */
static inline uint64_t object_sequence(void)
{
	return __atomic_add_fetch(&CUDA_STATE->sequence, 1, __ATOMIC_RELAXED);
}

/* Let it live: its sequence is now. */
STUB_HIDDEN void object_live(struct object *o, void *real);
/* The same for what may have been looked up before: the object that lives already, in place of
 * @o, which is dropped then; or @o. */
STUB_HIDDEN struct object *object_live_once(struct object *o, void *real);
/* The living object of @kind whose real handle is @real; NULL: none. */
STUB_HIDDEN struct object *object_find(enum cuda_kind kind, const void *real);
/* It is about to be destroyed, with what is part of it: object_find() finds none of that. Or it has not been. */
STUB_HIDDEN void object_set_going(struct object *o, int is_going);
/* It no longer exists, nor does what was part of it. */
STUB_HIDDEN void object_kill(struct object *o);
/* Everything that belongs to the real @context no longer exists. */
STUB_HIDDEN void objects_kill_context(void *context);
/* First use of a function: from here on the driver has loaded it. Runs in the lower
 * half, on its thread-local storage. */
STUB_HIDDEN void object_used(struct object *o);
STUB_HIDDEN void object_change(struct object *o, struct cuda_call *call, int value);
/* Undone is what cuda_info[index] has changed in @o, which may be NULL, with @context current.
 */
STUB_HIDDEN void object_unchange(struct object *o, unsigned index, const void *context);

/* The real handle for what a program holds: @handle if it is no object of ours. */
static inline void *object_real(void *handle)
{
	return in_records_window((uintptr_t)handle) ? ((struct object *)handle)->real : handle;
}

static inline int is_dead(const void *real)
{
	return (uintptr_t)real >> 63;
}

/* The current context, real; NULL: none. */
STUB_HIDDEN void *current_context(void);

/* A record of the call of cuda_info[index] with @arguments (a word each, by call_param.word),
 * for struct object.made or changes. NULL: no memory, or the table cannot tell what to copy. */
STUB_HIDDEN struct cuda_call *call_new(unsigned index, const uint64_t *arguments);
STUB_HIDDEN void call_free(struct cuda_call *call);

/* Call cuda_info[index] down with @words, all handles real. */
STUB_HIDDEN int cuda_call_down(unsigned index, const uint64_t *words);
/* The whole of a call that leaves a record: what entries of way API_RECORD do. */
STUB_HIDDEN int cuda_perform(unsigned index, const uint64_t *arguments);
/* Something was set in @context that could not be set again; once is enough to know. */
STUB_HIDDEN int setting_lost(void *context, enum cuda_setting what);
/* The program uses a function by a handle that is none of ours: it came from a function without
 * a name, and may stand for something else after a restart. Runs in the lower half, on its
 * thread-local storage. */
STUB_HIDDEN void function_lost(void);
/* An object of a kind that cannot be made again, with the driver's own handle. 0 or an error.
 */
STUB_HIDDEN int object_lost(enum cuda_kind kind, void *real);
/* The context that a new object of @kind goes with, when @current is; NULL: it is the process's
 * or a device's, and goes by a call of its own only. */
STUB_HIDDEN void *object_context(enum cuda_kind kind, void *current);
/* What the driver destroys together with something made out of @from, which may be NULL. */
STUB_HIDDEN struct object *object_whole(enum cuda_kind kind, struct object *from);

/* load_options.c. Some options lead to what cannot be copied. */
STUB_HIDDEN int options_have_lists(const struct call_info *info, const uint64_t *arguments);
/* A record's arguments that matter when the call is made again. */
STUB_HIDDEN void options_filter(const struct call_info *info, uint64_t *arguments);
/* What else is to be copied of the options of cuda_info[index], in bytes; and for a record's
 * arguments, to where it says. */
STUB_HIDDEN uint64_t options_bytes(unsigned index, const uint64_t *arguments);
STUB_HIDDEN void options_copy(unsigned index, const uint64_t *arguments, void *to);

/* device_program.c. A program for the device: the bytes of it that must be kept when it is
 * handed to the driver (0: it stays where it is), and a copy of them. */
STUB_HIDDEN uint64_t image_bytes(const void *image);
STUB_HIDDEN void image_copy(void *to, const void *image);
#define FATBIN_WRAPPER 0x466243b1
struct fatbin_wrapper {
	uint32_t magic, version;
	const void *data;
	const void *more;
};

#endif
