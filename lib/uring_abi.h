/*
 * lib/uring_abi.h - <linux/io_uring.h>, with what is newer than the oldest headers that we build
 * with (6.1).
 */
#ifndef LIB_URING_ABI_H
#define LIB_URING_ABI_H

#include <linux/io_uring.h>
#include <sys/syscall.h>

#ifndef IORING_SETUP_NO_SQARRAY
#define IORING_SETUP_NO_SQARRAY (1u << 16)
#endif

/* enum values: the preprocessor does not see them. */
#define URING_REGISTER_NAPI         27
#define URING_REGISTER_PBUF_STATUS  26
#define URING_REGISTER_RESIZE_RINGS 33
#define URING_USE_REGISTERED_RING   (1u << 31)
#define URING_MSG_RING_FLAGS_PASS   (1u << 1)
#define URING_OP_READ_MULTISHOT     49
#define URING_OP_RECV_ZC            58
#define URING_TIMEOUT_MULTISHOT     (1u << 6)
#define URING_OFF_SQ_RING           0ul
#define URING_OFF_CQ_RING           0x8000000ul
#define URING_OFF_SQES              0x10000000ul

/* Slots for registered rings that a thread has (IO_RINGFD_REG_MAX, io_uring/tctx.h). */
#define URING_REGISTERED_RINGS 16

/* What /proc shows that a descriptor or mapping of one leads to. */
#define URING_LINK "anon_inode:[io_uring]"

#endif
