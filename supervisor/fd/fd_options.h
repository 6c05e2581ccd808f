/*
 * fd/fd_options.h - what can be chosen for open files, at a checkpoint and at a restart.
 */
#ifndef SUPERVISOR_FD_FD_OPTIONS_H
#define SUPERVISOR_FD_FD_OPTIONS_H

#include <stdbool.h>

/* What to do about a TCP connection whose other end is not being saved. */
enum fd_tcp {
	FD_TCP_REFUSE, /* the checkpoint fails */
	FD_TCP_RESET,  /* after a restart it is broken: ECONNRESET */
	FD_TCP_KEEP,   /* it continues after a restart (TCP_REPAIR; a privilege) */
};

struct fd_restore_options {
	bool alive;          /* the program is there: open nothing that it could notice, and
			       * make what stands for it (trial_stand_in.h) */
	bool files_are_back; /* files whose contents are in the checkpoint are as they were */
	bool rollback_files; /* move what files gained since into FILE.trecr-tail */
	const char *
		destination; /* where checkpoints are going to be written, which may not be there yet;
				  * absolute; NULL: nowhere */
	const char *pidfile; /* that the supervisor is going to write; absolute; NULL: none */
	bool clocks_continue; /* CLOCK_MONOTONIC and CLOCK_BOOTTIME continue from the checkpoint */
	char temporary_name[32]; /* name of directories for a moment; nobody else has it */
	int kept;                /* connections to the outside go there, silent as yet
				    (socket/kept_connections.h) */
};

#endif
