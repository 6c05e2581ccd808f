/*
 * fd_table/descriptors_count.h - at a checkpoint: how many descriptors a restart needs.
 */
#ifndef SUPERVISOR_FD_TABLE_DESCRIPTORS_COUNT_H
#define SUPERVISOR_FD_TABLE_DESCRIPTORS_COUNT_H

#include "supervisor/fd/fd.h"

/* Descriptors that one process of a restart has open at the same time, at most, for open files
 * of the tree. All must be known: called after socket_dump_all(). */
uint64_t descriptors_count(const struct fd_dump *d);

#endif
