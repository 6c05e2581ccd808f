/*
 * open_by_group.h - what the supervisor and the program in opener/ say to each other.
 *
 * The program is started with the socket as descriptor 0, and two arguments: the lines of uid_map and gid_map
 * (user_namespaces(7)). One byte from it says that it is ready; if it ends before, it cannot open files here. Each
 * request comes with two descriptors: the file (O_PATH), and a socket for the answer, which is one byte with a
 * descriptor; without an answer the socket is closed.
 */
#ifndef SHARED_OPEN_BY_GROUP_H
#define SHARED_OPEN_BY_GROUP_H

struct open_by_group {
	int flags; /* of open(2) */
};

#endif
