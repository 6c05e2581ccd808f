/*
 * checkpoint_part.h - a member's side of a checkpoint of its job (doc/decisions/job.md).
 *
 * The coordinator of the checkpoint holds a connection to each member. A member says how far
 * it is, by a line, and waits until all are as far: "go". While it waits it hears "wait" now and
 * then. A connection that ends means that the checkpoint is given up.
 *
 *	counted STEPS		it runs, and comes to rest with the others (quiesce.h): what it has counted
 *				so far it has said before, in lines "count" and "activity"; in the place of
 *				"go" may come "limit" lines, and "look": it is to count again
 *	frozen			the program is stopped
 *	sent			how many messages it has sent to whom it has said before, in lines "messages"; in
 *				the place of "go" come "due" lines, and "settle" or "take": it is to look for messages
 *	drained DONE SYNCHRONOUS RANK CALL	it has looked, and has all messages or has not, synchronous sends
 *				without a receive, and what it waits for; "settle", "take" or "go" is the answer
 *	settled			no asynchronous I/O is under way any more that changes memory and files
 *	written			all that needs it to be stopped is written
 *	stored ID JOB		complete on the disk; go: the whole is complete
 *	tried			a restart has been tried, for a program that is to be ended;
 *				go: end it
 *	killed			it is ended
 */
#ifndef SUPERVISOR_JOB_CHECKPOINT_PART_H
#define SUPERVISOR_JOB_CHECKPOINT_PART_H

#include <stddef.h>
#include <stdint.h>

#include "lib/err.h"

#define PART_COUNTED "counted"
#define PART_FROZEN  "frozen"
#define PART_SENT    "sent"
#define PART_DRAINED "drained"
#define PART_SETTLED "settled"
#define PART_WRITTEN "written"
#define PART_STORED  "stored"
#define PART_TRIED   "tried"
#define PART_KILLED  "killed"
#define PART_GO      "go"
#define PART_WAIT    "wait"
#define PART_LOOK    "look"

#define PART_COUNT    "count"    /* NUMBER ENTERED LEFT SIZE, of a communicator */
#define PART_ACTIVITY "activity" /* DOING NUMBER RANK CALL: what a thread is at */
#define PART_LIMIT    "limit"    /* NUMBER LIMIT */

#define PART_MESSAGES "messages" /* NUMBER RANK COUNT: sent on the communicator to that rank */
#define PART_DUE      "due"      /* NUMBER RANK COUNT: sent on it by that rank */
#define PART_SETTLE   "settle"
#define PART_TAKE     "take"

/* Whether the members were ended is decided once: by a symbolic link in the job's checkpoint,
 * made by the coordinator when all have tried a restart, or by the first member that gives up
 * before. It leads to one of the two words. */
#define PART_OUTCOME   "outcome"
#define PART_ENDED     "ended"
#define PART_CONTINUED "continued"

/* How often a waiting member is told to wait, and after how long a silence the checkpoint is given up.
 */
#define PART_WAIT_MS    1000
#define PART_SILENCE_MS 30000

struct part {
	int fd;      /* to the coordinator */
	char *whole; /* directory of the job's checkpoint when it is complete */
	uint64_t sequence;
};

/* Say @lines; and hear one, which is an error when there is none for long. */
int part_say(const struct part *p, const char *lines, size_t size, struct err *e);
int part_hear(const struct part *p, char *line, size_t size, struct err *e);

/* Say that we are at @stage and wait for all others. */
int part_reached(struct part *p, const char *stage, struct err *e);

/* The same when our part is stored: 0 when the whole is complete, also when the coordinator
 * died after that. */
int part_stored(struct part *p, const uint8_t id[16], const uint8_t job_id[16], struct err *e);

/* The same when we may end: 0 when all do. */
int part_tried(struct part *p, struct err *e);

/* Make @outcome the outcome of the checkpoint @whole, unless it has another one: returns 0 when
 * @outcome is the outcome now. */
int part_decide(const char *whole, const char *outcome, struct err *e);

#endif
