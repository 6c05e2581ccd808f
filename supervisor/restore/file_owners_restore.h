/*
 * restore/file_owners_restore.h - who gets the signals of files (F_SETOWN).
 */
#ifndef SUPERVISOR_RESTORE_FILE_OWNERS_RESTORE_H
#define SUPERVISOR_RESTORE_FILE_OWNERS_RESTORE_H

#include "supervisor/state/new_process.h"

/* Owners of files that are threads, or the group that we are in (file_owners_restore.c). */
int new_process_file_owners(struct new_process *np);

#endif
