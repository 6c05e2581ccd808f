/*
 * view.h - what trecr-inspect can show of a checkpoint. A new view is a file with its
 * functions, a line here, and a row in the table of trecr-inspect.c.
 */
#ifndef TOOLS_INSPECT_VIEW_H
#define TOOLS_INSPECT_VIEW_H

#include "ckpt/store.h"
#include "lib/json.h"
#include "lib/util.h"

/* Shows something of process number @process of @c: as lines of text, or as values that join
 * the process's JSON object. */
struct view {
	void (*text)(const struct checkpoint *c, size_t process, struct buf *out);
	void (*json)(const struct checkpoint *c, size_t process, struct json *j);
};

extern const struct view regions_view; /* regions.c */
extern const struct view threads_view; /* thread_view.c */
extern const struct view fds_view;     /* fds.c */
extern const struct view stack_view;   /* stack.c */

/* The whole on one screen (summary.c). The JSON values join the checkpoint's object, and
 * a process's values the process's. */
void summary_text(const struct checkpoint *c, struct buf *out);
void summary_json(const struct checkpoint *c, struct json *j);
void summary_process_json(const struct checkpoint *c, size_t process, struct json *j);

/* The id of process number @process of @c, as the process itself sees it (summary.c). */
int32_t view_pid(const struct checkpoint *c, size_t process);

/* How the memory, threads and descriptors of @b differ from @a's (diff.c). */
void diff_text(const struct checkpoint *a, const struct checkpoint *b, struct buf *out);

/* Write process number @process as a plain and complete core file to @path, which must not
 * exist (core.c). @notice is told what could not be had. */
int core_write(const struct checkpoint *c, size_t process, const char *path,
	void (*notice)(const char *line), struct err *e);

#endif
