/* object.h - handles: pointers to records that are known to the table, at places that differ
 * from process to process. */
#ifndef T_SIM_OBJECT_H
#define T_SIM_OBJECT_H

enum object_kind {
	OBJECT_CONTEXT = 1,
	OBJECT_MODULE,
	OBJECT_FUNCTION,
	OBJECT_STREAM,
	OBJECT_EVENT,
	OBJECT_GRAPH,
	OBJECT_NODE,
	OBJECT_MEMORY,
	OBJECT_LIBRARY,
	OBJECT_KERNEL,
	OBJECT_POOL,
	OBJECT_GRAPH_EXEC,
	OBJECT_ARRAY,
	OBJECT_MIPMAPPED_ARRAY,
	OBJECT_TEXTURE,
	OBJECT_SURFACE,
	OBJECT_LINKER,
	OBJECT_USER_OBJECT,
	OBJECT_DESCRIPTION,
	OBJECT_GREEN_CONTEXT,
	OBJECT_NOTIFICATION,
	OBJECT_LOG_CALLBACK,
	OBJECT_EXTERNAL_MEMORY,
	OBJECT_EXTERNAL_SEMAPHORE,
};

struct object {
	enum object_kind kind;
	struct object *next;
};

/* Zeroed memory of @size bytes that begins with a struct object, known from now on. */
void *object_new(enum object_kind kind, unsigned long size);
/* @handle if it is a live object of @kind, else NULL. Something that never was a handle of this
 * process's driver at all ends the process. */
void *object_get(enum object_kind kind, void *handle, const char *function);
void object_free(void *object);
/* @object, at a place of its own that is the same in every process, is known from now on. */
void object_adopt(enum object_kind kind, struct object *object);

/* An adopted object is no more. */
void object_forget(struct object *object);

#endif
