/*
 * socket/messages_dump.h - what waits in sockets to be read, into the image.
 */
#ifndef SUPERVISOR_SOCKET_MESSAGES_DUMP_H
#define SUPERVISOR_SOCKET_MESSAGES_DUMP_H

#include "supervisor/socket/sockets_dump.h"

/* Save what waits in socket @number, which stays there. Descriptors in it may lead to sockets that
 * were not known yet: these are added, and pointers to sockets and objects are no longer valid. */
int socket_save_messages(struct fd_dump *d, uint32_t number, struct err *e);

#endif
