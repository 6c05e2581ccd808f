/*
 * restore/process_by_loader.h - one process of a restart, from its execve(2) to the last of its threads.
 */
#ifndef SUPERVISOR_RESTORE_PROCESS_BY_LOADER_H
#define SUPERVISOR_RESTORE_PROCESS_BY_LOADER_H

#include "supervisor/state/new_process.h"

/* Look at process number @index of r->c; s, c, o, clocks and e are the
 * caller's to fill before. */
int new_process_init(struct new_process *np, size_t index, const struct restart_fds *fds);

void new_process_free(struct new_process *np);

/* Whether the program's own file is there to be executed. Only an image that carries its
 * memory can do without. */
bool new_process_exe_is_there(const struct new_process *np);

/* Steps, in this order; NULL ends the list. r->process.pid and its first thread are filled. Each waits for what the one
 * before has let the process do by itself, so that others can be taken through theirs meanwhile: but not processes with
 * which it shares memory, descriptors or directories. */
typedef int (*const new_process_step)(struct new_process *np);

/* From RESTORE_EXECUTED to RESTORE_MAPPED. */
extern new_process_step new_process_map_steps[];

/* To RESTORE_THREADS: all of the process's state but registers. */
extern new_process_step new_process_thread_steps[];

#endif
