/* offsets.h - offsets in structs of shared/cuda/cuda_state.h, for assembly. */
#ifndef SHARED_CUDA_OFFSETS_H
#define SHARED_CUDA_OFFSETS_H

#define CUDA_OBJECT_FLAGS 12

#define CUDA_STATE_GENERATION 32
#define CUDA_STATE_PRIMARIES  40
#define CUDA_DEVICES          64

/* struct object.flags */
#define CUDA_OBJECT_REAL 0x1 /* the program holds the driver's own handle */
/* Cannot be made again: while it lives, a checkpoint is refused. */
#define CUDA_OBJECT_LOST     0x2
#define CUDA_OBJECT_USED     0x4  /* a function that has been used: from then on it is loaded */
#define CUDA_OBJECT_RECORDED 0x8  /* an event, as of the last checkpoint */
#define CUDA_OBJECT_RESTORED 0x10 /* an event that was recorded before the last restart */
/* It is being destroyed: what the driver calls so is another object, if there is one. */
#define CUDA_OBJECT_GOING  0x20
#define CUDA_OBJECT_ADOPTS 0x40 /* a node that a graph was moved into, which may be older */
#define CUDA_OBJECT_SAVED  0x80 /* of graphs: described by the checkpoint under way */

#endif
