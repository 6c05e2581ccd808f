/*
 * fd_kinds/inherited_stream.h - terminals, pipes and sockets that the program has from its launcher. At a restart it
 * gets the streams of trecr-restart in their place (fd_inherited_restore() in inherited_stream.c).
 */
#ifndef SUPERVISOR_FD_KINDS_INHERITED_STREAM_H
#define SUPERVISOR_FD_KINDS_INHERITED_STREAM_H

#include <stdbool.h>
#include <stdint.h>

struct fd_dump;
struct fd_source;
struct image_description;

/* Whether @x is a standard stream of the launcher's itself, the same open file. */
bool fd_is_shared_stream(const struct image_description *x);

/* The terminal that @fd leads to, also where it was opened as /dev/tty: its device number; 0:
 * no terminal, or the terminal was hung up. */
uint64_t fd_terminal_of(int fd);

/* Whether @s was opened as /dev/tty, and leads to the terminal of the standard streams or the supervisor's, which controls
 * another session than that of the process. */
bool fd_is_left_terminal(const struct fd_dump *d, const struct fd_source *s);

/* By which ways the program has the terminal @device from its launcher:
 * IMAGE_TERMINAL_STREAM() and IMAGE_TERMINAL_OPENED. */
uint32_t fd_dump_ways_to_terminal(const struct fd_dump *d, uint64_t device);

#endif
