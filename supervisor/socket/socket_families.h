/*
 * socket/socket_families.h - what there is to know about families of sockets and their
 * addresses.
 *
 * How to add a family: socket_is_known() says which of its sockets can be saved at all.
 * FAMILY_dump.c looks at one at a checkpoint (socket_FAMILY_look(), called by look_at_socket() of
 * sockets_dump.c) and refuses what its queues hold if that cannot come back; socket_inet_make() or a
 * function beside it makes it at a restart (called by socket_make() of sockets_restore.c). Its options
 * are rows in socket_options.c, its address is shown by socket_name_show(). Then a victim (t/victim/),
 * and its row in doc/kernel-state.md.
 */
#ifndef SUPERVISOR_SOCKET_SOCKET_FAMILIES_H
#define SUPERVISOR_SOCKET_SOCKET_FAMILIES_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "ckpt/image.h"
#include "lib/err.h"
#include "lib/util.h"
#include "supervisor/fd/fd.h"

/* Whether such a socket can be saved at all. */
bool socket_is_known(int family, int type, int protocol);
/* Whether it is a socket for packets of a protocol (SOCK_RAW) or of ICMP (man 7 icmp),
 * which holds no connection and whose queue cannot be filled again. */
bool socket_is_raw(const struct image_socket *s);
/* Say in @e why @fd, one of another kind, cannot; returns -1. */
int socket_refuse(int fd, struct err *e);

/* How many of the @count sockets @s wait to be accepted by number @listener, or by another one
 * at the same address, to which of which they come is the kernel's choice (SO_REUSEPORT). */
uint32_t socket_waiting_at(const struct image_socket *s, size_t count, size_t listener);

/* Whether the name of a UNIX socket leads to a file. */
bool socket_name_is_file(const uint8_t *name, uint32_t size);
/* The path in it, the caller's to free. */
char *socket_name_path(const uint8_t *name, uint32_t size);

/* "127.0.0.1:80", "/run/x", "@abstract" */
void socket_name_show(const uint8_t *name, uint32_t size, struct buf *out);
/* The name of @s, of whatever family. */
void socket_show_name(const struct image_socket *s, struct buf *out);

/* Whether two addresses are the same, be they written as IPv4 or as IPv6. */
bool socket_same_address(const uint8_t *a, const uint8_t *b);
bool socket_is_any_address(const uint8_t *name);
uint16_t socket_port(const uint8_t *name);
/* Whether the IP address is one of this machine; and the port of it free. */
bool socket_is_local(const uint8_t *name, uint32_t size);
bool socket_is_free(const uint8_t *name, uint32_t size, int type, int protocol);

/* The row of sockets in the table of kinds of open files. */
FD_ROW(fd_socket);

#endif
