/*
 * share.h - GPU memory, pools and events that processes of one program share: how a process asks
 * their owner. Plain types: it is used in both halves.
 *
 * The handles that the program passes around (CUipcMemHandle and the like; the contents of a file
 * descriptor) are struct share_handle. They name the owner and what is meant, but nothing of the
 * driver's, so they stay good after a restart. A process that opens one asks the owner's lower half, by a
 * socket (lower/share_socket.c), for the driver's descriptor of the moment.
 */
#ifndef SHARED_SHARE_H
#define SHARED_SHARE_H

#include <stdint.h>

#define SHARE_MAGIC 0x6572616873727274 /* "trrshare" */

#define SHARE_NAME 16 /* bytes of a process's name, which are random */

enum share_kind {
	SHARE_MEMORY = 1, /* an allocation of cuMemAlloc or of a pool */
	SHARE_PHYSICAL,   /* of cuMemCreate */
	SHARE_POOL,
	SHARE_EVENT,
};

/* As large as what CUDA has for it. */
struct share_handle {
	uint64_t magic;
	uint8_t owner[SHARE_NAME];
	uint32_t kind, reserved;
	uint64_t object; /* its address in the owner */
	uint64_t id;     /* which of the objects that have been at that address */
	uint64_t more[2];
};
_Static_assert(sizeof(struct share_handle) == 64, "");

struct share_request {
	struct share_handle handle;
	uint32_t index; /* of the piece */
	uint32_t look;  /* not 0: nothing is wanted but the answer */
};

struct share_reply {
	int32_t result;   /* of the driver; 0: it is there */
	uint32_t pieces;  /* of memory that it consists of */
	uint64_t piece;   /* size of this one, */
	uint64_t whole;   /* and of all of them */
	uint64_t size;    /* as it was asked for, */
	uint64_t offset;  /* from the start of the first piece on */
	uint64_t created; /* flags of cuMemCreate */
	uint64_t session; /* lower_table.session of the owner */
	uint8_t device[16];
	uint8_t properties[32]; /* struct memory_properties */
	uint8_t event[64];      /* the driver's handle */
};

#endif
