/*
 * module.h - mapped files, and how to know them again: by build-id, else by content hash.
 */
#ifndef SUPERVISOR_TARGET_MODULE_H
#define SUPERVISOR_TARGET_MODULE_H

#include <stdbool.h>

#include "ckpt/image.h"
#include "lib/err.h"

/* Remembers what was worked out for a file, as long as it does not change (device, inode,
 * size, time of modification). */
struct module_cache;

/* For as long as the process lives. */
struct module_cache *module_cache_new(void);

/* Identify the file @path, whose inode number must be @inode. Fills all of @m but m->path. When
 * the name leads elsewhere by now, only IMAGE_MODULE_DELETED is set. */
int module_identify(struct module_cache *c, const char *path, uint64_t inode,
	struct image_module *m, struct err *e);

/* What is known of @path without reading it: size and time of modification. */
int module_look(const char *path, struct image_module *m, struct err *e);

/* Whether @path still holds what @m says. Fails with the difference named. */
int module_check(const struct image_module *m, const char *path, struct err *e);

/* Whether @path, which was mapped shared and looked at as @m, is still there and no shorter.
 * *changed: its size is another one, or, of a @writable one, its time: of what is only read,
 * like a cache of the system's, that is another one on each machine. */
int module_check_shared(const struct image_module *m, const char *path, bool writable,
	bool *changed, struct err *e);

#endif
