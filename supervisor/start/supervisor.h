/*
 * supervisor.h - what one supervisor knows: the program it started or brought back, how it
 * is to be checkpointed, and where.
 *
 * The supervisor is the parent (or, behind a namespace's init, the grandparent) of the root
 * process and subreaper of its tree. It is attached to nothing while the program runs.
 */
#ifndef SUPERVISOR_START_SUPERVISOR_H
#define SUPERVISOR_START_SUPERVISOR_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "ckpt/pack.h"
#include "ckpt/store.h"
#include "lib/err.h"
#include "lib/util.h"
#include "supervisor/fd/fd_options.h"
#include "supervisor/target/dirty.h"

/* How pages are known that have been written to since the last checkpoint. */
enum dirty_mode {
	DIRTY_HASH, /* by comparing the hashes of all */
	DIRTY_UFFD, /* from the kernel (target/dirty.h); by hashes where it does not tell */
};

/* As much as there is room for (memory/memory_available.h). */
#define FORK_LIMIT_NONE UINT64_MAX

struct supervisor_options {
	const char *dir;     /* where checkpoints go; NULL: ./trecr-NAME-PID */
	unsigned interval_s; /* periodic checkpoints, 0: none */
	unsigned keep;       /* how many checkpoints to keep */
	bool incremental;
	bool alone; /* no member of a job, although a launcher started several of us */
	const char *interface; /* by which members of a job reach each other; NULL: any */
	enum dirty_mode dirty; /* how to find out what has changed */
	unsigned full_every;   /* with incremental: one checkpoint in so many is a full one, 0:
				  only the first */
	bool fork;             /* let the program run on while its memory is written */
	uint64_t fork_limit;   /* bytes that copies for that may take, or FORK_LIMIT_NONE */
	bool portable;
	uint64_t save_files;    /* contents of files up to this size, 0: of none */
	char *save_directories; /* all their files: strings_next() (lib/util.h); NULL: of none */
	int ckpt_signal;        /* take a checkpoint on this signal, 0: none */
	struct pack_choice compress; /* blocks of memory in the image */
	unsigned threads;            /* that write and read memory, 0: as is sensible */
	uint64_t rate;               /* bytes a second that are written at most, 0: any */
	unsigned deadline_s;         /* for checkpoints on ckpt_signal, 0: none */
	enum fd_tcp tcp;             /* connections to the outside */
	unsigned drain_s;            /* how long GPUs may take to come to rest */
	bool verbose;
};

struct complete_checkpoint {
	char *path;
	uint64_t sequence;
	uint64_t realtime_ns;
	uint64_t pause_ns;
	uint64_t stored_bytes;
	uint64_t memory_bytes;
	uint64_t sync_ns; /* from the last byte written to the last one on the disk */
	/* It could not be restarted, or hashes that it needs are damaged: nothing is to build on it. */
	bool unrestartable;
};

struct supervisor {
	const char *tool; /* "trecr-run", for messages */
	struct supervisor_options options;

	pid_t root;  /* the program, as this process sees its id */
	pid_t init;  /* its init, where it lives in a namespace, 0: none; our child then */
	int init_fd; /* reports of that init (namespace_init.h), -1: none */
	bool init_is_first; /* of its namespace, which ends with it; else that has other programs, too */
	int release_fd; /* holds a restored process back (spawn.h), -1: none */
	bool restarted; /* the program has come back from an image */
	const char *
		mpi_library; /* then: --mpi of trecr-restart (split/mpi_libraries.h); NULL: auto */
	char *command;       /* for messages and the image */
	char *pidfile;       /* that will be written after the restart; absolute; NULL: none */
	char *release;       /* the folder of this release, NULL: it is not installed */
	struct buf
		former_children; /* struct proc_identity: children that we had before we became
				       a supervisor */

	struct store *store; /* opened at the first checkpoint */
	uint8_t job_id[16];
	struct job *job; /* of which it is a member (supervisor/job/member_files.h); NULL: by
			    itself */
	struct module_cache *modules; /* what is known of mapped files (module.h) */
	struct dirty_list dirty;      /* the processes whose pages are watched */
	struct buf sleeps;            /* struct sleep_record: threads found asleep
					 (syscall/interrupted_call.h) */

	struct complete_checkpoint last; /* all zero when there was none yet */
	uint64_t started_realtime_ns;
	uint64_t checkpoints_done, checkpoints_failed;
	struct buf told; /* char *: notices that have been given on standard error */

	struct lazy
		*lazy; /* memory that is still to be filled (memory/lazy.h); NULL: all is there
			      */
	struct loop *loop;         /* the event loop's own (loop.c) */
	struct terminal *terminal; /* terminal.c's own */
};

/* Before any is known. */
#define SUPERVISOR_INIT(name)                                                                  \
	{                                                                                      \
		.tool = (name), .init_fd = -1, .release_fd = -1                                \
	}

#endif
