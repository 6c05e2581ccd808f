/*
 * fd_table/descriptors.h - file descriptors: from a frozen process into the image, and back.
 *
 * A descriptor is a number in a process; what it stands for is an open file description,
 * which several numbers (and processes) may share. Descriptions and the objects behind them
 * (memfd, unlinked file, pipe) are saved once, in the job file. Each kind is one row of a
 * table: name, match, dump, restore, show.
 */
#ifndef SUPERVISOR_FD_TABLE_DESCRIPTORS_H
#define SUPERVISOR_FD_TABLE_DESCRIPTORS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "ckpt/image_read.h"
#include "ckpt/image_write.h"
#include "ckpt/store.h"
#include "lib/err.h"
#include "supervisor/fd/fd_options.h"

struct fd_dump;
struct fd_restore;
struct process;
struct tree;

/* ---- checkpoint: all processes are frozen ---- */

/* Look at descriptors 0, 1 and 2 of this process: a terminal, pipe or socket that the program
 * shares with them is not its own, and comes from the process that restarts it. To be called once,
 * before the supervisor lets go of them. */
void fd_remember_streams(void);

struct fd_dump *fd_dump_new(struct image_writer *job, enum fd_tcp tcp);
void fd_dump_free(struct fd_dump *d);

/* The processes that are being saved, for descriptors that lead to processes. */
void fd_dump_tree(struct fd_dump *d, const struct tree *tree);

/* The program is member @rank of a job: of memory that members share, each saves a part. */
void fd_dump_rank(struct fd_dump *d, int rank);

/* Contents of files that are written to are saved, too, up to @size bytes (0: none); whether
 * the program resumes and may change them. */
void fd_dump_save_files(
	struct fd_dump *d, uint64_t size, const char *directories, bool program_resumes);

/* Wait until all requests have ended that are under way in io_urings of the tree, but for those
 * that wait for something: before fd_dump_process() of any process, when the threads of all
 * have been saved. Fails as the ring's own row would. */
int fd_settle_rings(struct fd_dump *d, struct err *e);

/* Save the descriptor table of @pid: adds IMAGE_NOTE_FDS to @process, and descriptions and
 * objects to @d. Descriptors at or above @limit belong to the lower half and are left out.
 * A descriptor that cannot be saved fails the whole with "descriptor N (what it is) of
 * process PID (comm): reason". Changes nothing in the process: it looks through
 * pidfd_getfd(2), /proc/PID/fdinfo, kcmp(2) and, for bytes in pipes, tee(2). @process is NULL
 * if it shares the table of an earlier process. */
int fd_dump_process(
	struct fd_dump *d, pid_t pid, struct image_writer *process, int limit, struct err *e);

/* Behind fd_dump_process() of all processes: by which numbers threads of @p know an io_uring.
 */
int fd_dump_rings(struct fd_dump *d, struct process *p, struct err *e);

/* Behind fd_dump_process() of all processes: the tables of those threads of @pid that have left
 * the process's, into IMAGE_NOTE_THREAD_FDS. @lower: it has a lower half. */
int fd_dump_threads(
	struct fd_dump *d, pid_t pid, bool lower, struct image_writer *process, struct err *e);

/* The file @path, which a library of the lower half has opened: it is checked at a restart, and saved or cut, as if the
 * program had a descriptor of it that was opened with @flags. */
int fd_dump_without_descriptor(struct fd_dump *d, const char *path, int flags, struct err *e);

/* Behind fd_dump_process() of all processes: whether a restart can have what has been found so far, and @besides
 * descriptors for other things. */
bool fd_dump_fits(const struct fd_dump *d, uint64_t besides);

/* Write contents of the objects that descriptors lead to, and the notes. Call once, last.
 * @besides: how many descriptors a process of a restart has for other things. */
int fd_dump_finish(struct fd_dump *d, uint64_t besides, struct err *e);

/* The program resumes, or is about to: connections to the outside that are kept have stood
 * still since fd_dump_finish(). */
void fd_dump_resume(struct fd_dump *d);
/* Or it is to be ended: they stay blocked until job @job_id is restarted. Whether there are any.
 */
int fd_dump_hold(struct fd_dump *d, const uint8_t job_id[16], struct err *e);
bool fd_dump_keeps(const struct fd_dump *d);
/* The program has been ended: the ports of its connections are to be free at once, and the
 * other ends of connections that are kept are told nothing. */
void fd_dump_let_go(struct fd_dump *d);

/* ---- restart: runs in the new process, before it executes the program's file ---- */

/* Check what can be checked before anything is made: files exist, have the right type and
 * are no shorter than they were. Notices (a file has grown, ...) go to @notice, one line each
 * without newline; may be called in the supervisor. With rollback_files this is also where
 * tails are moved aside. */
int fd_restore_check(const struct checkpoint *c, const struct fd_restore_options *o,
	void (*notice)(const char *line), struct err *e);

/* Make all descriptions that processes of the job have, and all objects that they map, at
 * numbers above all of theirs. Processes made by fork(2) from then on share them as they did.
 * @std are the descriptors of trecr-restart's standard streams. NULL on failure. */
struct fd_restore *fd_restore_new(const struct checkpoint *c,
	const struct fd_restore_options *o, const int std[3], struct err *e);

/* In process number @index, when all others are there: put its descriptors at their final
 * numbers (close-on-exec is set by the caller's plan after exec, as they must survive that).
 * On return only the process's own descriptors, descriptors of fd_restore_object(), and @keep (an
 * array ended by -1) are open: the files of the checkpoint are closed as well. Descriptors in
 * @keep that stand in the way of a number are moved, and the array updated. POSIX locks are
 * left to be taken later: fd/file_locks.h. */
int fd_restore_process(struct fd_restore *r, size_t index, int *keep, struct err *e);

/* What fd_restore_process() does is done by a process that only shares the table of the one it
 * is for, which has the id that it had. */
void fd_restore_for_another(struct fd_restore *r);

/* Descriptor (without close-on-exec, above all of the process's own) that leads to object
 * number @object (from 1), for the caller to map and close; read-write if it is to be mapped
 * @writable: a file that is open so cannot be executed. -1 on failure. */
int fd_restore_object(struct fd_restore *r, uint32_t object, bool writable, struct err *e);

/* Descriptor (without close-on-exec, above all of the processes' own) of open file
 * @description; before fd_restore_process(). -1 on failure. */
int fd_restore_open(struct fd_restore *r, uint32_t description, struct err *e);

#endif
