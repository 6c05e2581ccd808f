/*
 * phase.h - how far a checkpoint or a restart has come: for the status
 * (supervisor/run/checkpoint_under_way.h), and for tests that make trecr's system calls fail, one kind in each
 * phase (t/fault/fault.c).
 */
#ifndef LIB_PHASE_H
#define LIB_PHASE_H

enum phase {
	PHASE_NONE,
	PHASE_FREEZE,
	PHASE_DUMP,
	PHASE_WRITE,  /* contents of memory */
	PHASE_COPIES, /* the same from copies, while the program runs */
	PHASE_COMMIT,
	PHASE_THAW,
	PHASE_CHECK,  /* is all there that a restart needs? */
	PHASE_CREATE, /* processes are made */
	PHASE_REBUILD,
	PHASE_REGISTERS,
	PHASE_LET_GO,
	PHASES,
};

/* Written by the one thread that does the work; in the executables' dynamic symbols. */
extern volatile int phase_now;

#endif
