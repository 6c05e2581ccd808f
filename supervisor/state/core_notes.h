/*
 * state/core_notes.h - the notes of an image that gdb and eu-stack read, as in a core file.
 */
#ifndef SUPERVISOR_STATE_CORE_NOTES_H
#define SUPERVISOR_STATE_CORE_NOTES_H

#include <signal.h>

#include "supervisor/state/dump.h"

/* The notes that gdb and its like read. @info: the thread's first pending signal, or zeros.
 * Threads come in the order of d->process->threads. */
void core_note_process(struct dump *d, const char *status, const char *args, size_t args_size);

void core_note_thread(struct dump *d, const struct image_thread *t, const void *xstate,
	size_t xstate_size, int signal, const siginfo_t *info);

void core_note_files(struct dump *d);

#endif
