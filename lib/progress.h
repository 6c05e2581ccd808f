/*
 * progress.h - a sign of life, for an interactive user, of work that takes longer than a second: only
 * when standard error is a terminal, and gone when the work is done.
 */
#ifndef LIB_PROGRESS_H
#define LIB_PROGRESS_H

/* @tool: "trecr-restart", @what: "restarting". One at a time. */
void progress_begin(const char *tool, const char *what);
void progress_end(void);

#endif
