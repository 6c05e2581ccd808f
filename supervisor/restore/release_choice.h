/*
 * restore/release_choice.h - which installed trecr a program on a GPU resumes with.
 *
 * Such a program holds libraries of the trecr that it was started by, and a supervisor of
 * another one does not know them. So releases are installed side by side, each in a folder of
 * lib/trecr with its own trecr-restart, which an image is handed to.
 */
#ifndef SUPERVISOR_RESTORE_RELEASE_CHOICE_H
#define SUPERVISOR_RESTORE_RELEASE_CHOICE_H

#include "ckpt/store.h"
#include "lib/err.h"

/* The trecr-restart of the release that made @c, for the caller to free; NULL: this one is to
 * try itself. */
char *release_tool(const struct checkpoint *c);

/* The same of the checkpoint @path, which this one cannot read. */
char *release_tool_unread(const char *path);

/* Fails when libraries of trecr's that programs of @c hold are gone or others. */
int release_check(const struct checkpoint *c, struct err *e);

#endif
