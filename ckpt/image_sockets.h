/*
 * image_sockets.h - the part of image.h about sockets: their state, options, messages and TCP connections.
 */
#ifndef CKPT_IMAGE_SOCKETS_H
#define CKPT_IMAGE_SOCKETS_H

#include "ckpt/image.h"

/* What a socket is in; `peer` and `listener` are numbers in IMAGE_NOTE_SOCKETS, from 1. */
enum image_socket_state {
	IMAGE_SOCKET_OPEN = 1,  /* nothing of the following */
	IMAGE_SOCKET_LISTENING, /* with `backlog` */
	IMAGE_SOCKET_CONNECTED, /* to `peer`; without one (datagrams): to peer_name */
	IMAGE_SOCKET_WAITING,   /* to be accepted by `listener`, as number `backlog` there */
	IMAGE_SOCKET_ENDED,     /* its other end no longer exists */
	IMAGE_SOCKET_STATES,
};

/* image_socket.flags */
#define IMAGE_SOCKET_RESET 0x1u  /* an error ECONNRESET waits to be fetched */
#define IMAGE_SOCKET_FILE  0x2u  /* the file of a UNIX socket's name is there */
#define IMAGE_SOCKET_DEAD  0x4u  /* ENDED: and nothing can be sent or received any more */
#define IMAGE_SOCKET_CRED  0x8u  /* credentials (SO_PEERCRED) are known */
#define IMAGE_SOCKET_MOVED 0x10u /* the file is not under that name, but under directory's */

#define IMAGE_SOCKET_ADDRESS 112

struct image_socket {
	uint32_t state; /* enum image_socket_state */
	uint32_t flags;
	uint16_t family, type; /* AF_, SOCK_ */
	uint32_t protocol;
	uint32_t peer, listener, backlog;
	uint32_t shutdown;    /* by shutdown(2): 1 receiving, 2 sending */
	uint32_t description; /* index in IMAGE_NOTE_DESCRIPTIONS */
	int32_t cred_pid;     /* SO_PEERCRED; 0: a process that is not known */
	uint32_t cred_uid, cred_gid;
	uint32_t directory; /* string: where a file's relative name starts; MOVED: the file */
	uint32_t file_mode, file_uid, file_gid;
	uint32_t first_option, option_count;     /* in IMAGE_NOTE_SOCKET_OPTIONS */
	uint32_t first_message, message_count;   /* in IMAGE_NOTE_MESSAGES */
	uint32_t name_size, peer_name_size;      /* bytes; 0: none */
	uint8_t name[IMAGE_SOCKET_ADDRESS];      /* struct sockaddr */
	uint8_t peer_name[IMAGE_SOCKET_ADDRESS]; /* struct sockaddr */
};
IMAGE_SIZE_IS(struct image_socket, 312);

struct image_socket_option {
	uint32_t level, name, size; /* as for setsockopt(2) */
	uint8_t value[20];
};
IMAGE_SIZE_IS(struct image_socket_option, 32);

#define IMAGE_MESSAGE_CRED 0x1u /* credentials came with it (SCM_CREDENTIALS) */

/* A message that waits in a socket; of a stream: bytes that belong together. */
struct image_message {
	uint64_t offset, size; /* in the socket's object */
	uint32_t flags;
	int32_t pid; /* of the sender; 0: not known */
	uint32_t uid, gid;
	uint32_t first_right, right_count; /* in IMAGE_NOTE_RIGHTS */
	uint32_t reserved;
	uint32_t name_size;
	uint8_t name[IMAGE_SOCKET_ADDRESS]; /* struct sockaddr of the sender */
};
IMAGE_SIZE_IS(struct image_message, 160);

/* How far a connection to the outside has come (TCP_REPAIR), for a restart to continue it. */
struct image_tcp {
	uint32_t socket;         /* its number in IMAGE_NOTE_SOCKETS, from 1 */
	uint32_t options;        /* TCPI_OPT_* of TCP_INFO */
	uint32_t receive_seq;    /* of the first byte that has not come yet */
	uint32_t send_seq;       /* of the first that was not written yet */
	uint32_t mss, timestamp; /* TCP_MAXSEG, TCP_TIMESTAMP */
	uint32_t scale;          /* of windows: sending, receiving << 16 */
	uint32_t sent_size;      /* bytes written and not acknowledged: behind all messages */
	uint32_t window[5];      /* struct tcp_repair_window */
	uint32_t reserved;
};
IMAGE_SIZE_IS(struct image_tcp, 56);

#endif
