/*
 * tools/inspect/sharing.h - what a process has in common with an earlier one, which keeps it.
 */
#ifndef TOOLS_INSPECT_SHARING_H
#define TOOLS_INSPECT_SHARING_H

#include "ckpt/store.h"
#include "lib/json.h"
#include "lib/util.h"

/* The id of the process that keeps @what for number @process; 0: itself. */
int32_t sharing_owner(const struct checkpoint *c, size_t process, enum image_shared what);

/* "memory and descriptors in common with 4711", or nothing. */
void sharing_text(const struct checkpoint *c, size_t process, struct buf *out);
/* An object "shares": {"memory": 4711, ...}, where there is anything. */
void sharing_json(const struct checkpoint *c, size_t process, struct json *j);

#endif
