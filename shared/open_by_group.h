/*
 * open_by_group.h - what the supervisor and the program in opener/ say to each other.
 *
 * The program is started with the socket as descriptor 0, and two arguments: the lines of uid_map and gid_map
 * (user_namespaces(7)). The first that it sends is 0 when it is ready, or the errno of why it cannot be, as an int. Each
 * request comes with two descriptors: a socket for the answer, and the file (O_PATH). The answer is an int, too: 0, with the
 * descriptor of the open file, or the errno of why there is none. A socket that is closed without an answer: it has ended, or
 * could receive no descriptor.
 */
#ifndef SHARED_OPEN_BY_GROUP_H
#define SHARED_OPEN_BY_GROUP_H

struct open_by_group {
	int flags; /* of open(2) */
};

#endif
