/* shared_memory.h - what a process shares with others of the program (shared/share.h), and what it has of theirs. */
#ifndef LOWER_CUDA_SHARED_MEMORY_H
#define LOWER_CUDA_SHARED_MEMORY_H

#include "shared/share.h"

struct cuda_state;

/* Before a checkpoint: what this process has of others is theirs still, and is saved with them. */
int cuda_agree(void);
/* How many things that are. */
unsigned cuda_count_imports(const struct cuda_state *s);

/* At a restart: this process answers again; and, when all do, it has again what is others'. */
int cuda_share_again(const struct cuda_state *s);
int cuda_import_again(struct cuda_state *s);

/* Event @o is of another process. */
struct object;
const struct share_handle *cuda_event_origin(const struct object *o);

#endif
