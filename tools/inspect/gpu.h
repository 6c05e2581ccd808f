/*
 * gpu.h - what a process had of the GPU driver, from the records in its memory
 * (shared/cuda/cuda_state.h). Shows nothing for a process that has not used it.
 */
#ifndef TOOLS_INSPECT_GPU_H
#define TOOLS_INSPECT_GPU_H

#include "ckpt/store.h"
#include "lib/json.h"
#include "lib/util.h"

void gpu_text(const struct checkpoint *c, size_t process, struct buf *out);
void gpu_json(const struct checkpoint *c, size_t process, struct json *j);

#endif
