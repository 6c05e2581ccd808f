/*
 * socket/packet_sockets.h - packet sockets (AF_PACKET): what those share who save one, make it
 * again and show it.
 *
 * Interfaces are saved by name: their numbers are others after a reboot. The name of such a
 * socket in an image is the struct sockaddr_ll of bind(2), with the interface's name behind
 * it.
 */
#ifndef SUPERVISOR_SOCKET_PACKET_SOCKETS_H
#define SUPERVISOR_SOCKET_PACKET_SOCKETS_H

#include <linux/if_packet.h>
#include <net/if.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>

#include "ckpt/image.h"
#include "lib/err.h"
#include "lib/util.h"

struct packet_name {
	struct sockaddr_ll address;
	char interface[IF_NAMESIZE]; /* "": all */
};

/* A value of PACKET_ADD_MEMBERSHIP, several of which make a long option (long_options.h). */
struct packet_membership {
	uint16_t type, length;
	uint8_t address[32];
	char interface[IF_NAMESIZE];
};

/* What @s is bound to; false: to nothing. */
bool packet_socket_name(const struct image_socket *s, struct packet_name *name);

/* Set the @size bytes of struct packet_membership. */
int packet_socket_join(int fd, const void *memberships, size_t size, struct err *e);

/* "eth0, protocol 0x0806" */
void packet_socket_show(const struct image_socket *s, struct buf *out);

/* Before anything is made: whether its interface is here. */
int packet_socket_check(const struct image_socket *s, struct err *e);

#endif
