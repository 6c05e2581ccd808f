/*
 * control_protocol.h - what both ends of a control socket agree on.
 *
 * A supervisor listens at /tmp/trecr-UID/PID: UID its user's (in a user namespace that of outside), PID its
 * own (CONTROL_TURNS). The
 * directory is the user's alone; where somebody else has taken that name, it is
 * /run/user/UID/trecr, which only the user can make. (Not the other way round: /run/user/UID
 * goes when the user logs out, and programs stay.) One connection carries one request, a line,
 * and its answer:
 *
 *	checkpoint [stop=0|1] [timeout_ms=N] [foresee=0|1] [drain_ms=N] [try=0|1|2] [tcp=MODE]
 *		[compress=METHOD] [fork=0|1] [threads=N] [rate=BYTES]
 *						"notice TEXT" lines, then ok PATH; or kept
 *						TEXT: complete, but not ended, and why
 *						of a member of a job: job DIRECTORY
 *						foresee=1: fails at once if the time-out will
 *						not be met; try=0: ends the program without a
 *						trial, try=1: tries a restart without ending
 *						it, too, try=2: reads the image back, too
 *	part=N checkpoint ...			the same of a member, for checkpoint number N of
 *						the job: a conversation (supervisor/job/checkpoint_part.h)
 *						comes before the answer; again TEXT is an error
 *						that may be gone in a moment
 *	turn RANK [again]			of rank 0 of a job: the right to take a checkpoint
 *						of it, held until the connection ends. RANK: which
 *						a signal has asked for it, or -1
 *						(supervisor/job/checkpoint_turns.h)
 *	arrived RANK SIZE CHECKPOINT		of rank 0 of a job that is being restarted: another
 *						member is there (supervisor/job/restart_barrier.h)
 *	mpi begun				of a program: it initialises MPI, by trecr's stub
 *						(stubs/mpi/init.c); ok
 *	mpi all					ok if the programs of all ranks of the job have said that,
 *						no if not, or later: it is not known yet, and is to be
 *						asked again (supervisor/job/mpi_ranks.h)
 *	launcher				of a program of the tree: by which launcher it was brought
 *						back: "variable NAME=VALUE" lines of its environment,
 *						"mpi N" (enum mpi_abi) and "library NAME" lines of the
 *						library that it needs, then ok; ok alone: by none
 *						(stubs/crossing/launcher.c)
 *	status					KEY VALUE lines, then an empty line
 *						(supervisor/run/requests.c)
 *
 * or "error TEXT". A request for a checkpoint waits while another one is taken; status is
 * answered at once. Closing the connection before the answer has come cancels the checkpoint. A
 * timeout of 0 is none. Backslash and newline in values are written as \\ and \n. The supervisor
 * closes the connection after the answer.
 */
#ifndef SUPERVISOR_CONTROL_CONTROL_PROTOCOL_H
#define SUPERVISOR_CONTROL_CONTROL_PROTOCOL_H

#include <sys/types.h>
#include <sys/un.h>

#include "lib/err.h"
#include "lib/util.h"

#define CONTROL_REQUEST_MAX 256 /* bytes of a request with its newline */

/* How many directories there are to choose from, the best first. */
#define CONTROL_DIRS 2

/* Directory number @choice of @uid's sockets; the caller's to free. */
char *control_dir(uid_t uid, int choice);

/* Whether @dir is a directory of @uid's that nobody else can look into or change. */
int control_check_dir(const char *dir, uid_t uid, struct err *e);

/* Supervisors of several pid namespaces that share a directory, as containers may share /tmp,
 * can have one id: the first is PID, the next PID.1, and so on, up to as many. */
#define CONTROL_TURNS 100

/* Fill @address with socket number @turn of @pid in @dir. */
void control_address(struct sockaddr_un *address, const char *dir, pid_t pid, unsigned turn);

void control_escape(struct buf *out, const char *value);
void control_unescape(char *value);

#endif
