/*
 * fault.h - what the library that lets system calls fail (fault.c) shares with the tool that
 * says which (t/tool/faults.c).
 */
#ifndef T_FAULT_FAULT_H
#define T_FAULT_FAULT_H

#include <stdatomic.h>

enum fault_class {
	FAULT_NONE,
	FAULT_OPEN,    /* open, openat */
	FAULT_READ,    /* read, pread, readlink */
	FAULT_WRITE,   /* write, pwrite, ftruncate */
	FAULT_SYNC,    /* fsync and the like */
	FAULT_NAME,    /* rename, mkdir, symlink */
	FAULT_CONTROL, /* fcntl, ioctl */
	FAULT_MEMORY,  /* mmap, process_vm_readv */
	FAULT_PROCESS, /* new threads */
	FAULT_WAIT,    /* waitpid */
	FAULT_TRACE,   /* ptrace */
	FAULT_QUEUE,   /* mq_timedsend, mq_timedreceive */
	FAULT_RAW,     /* what goes through syscall(2): clone3, kcmp, pidfd_getfd ... */
	FAULT_CLASSES,
};

struct fault_control {
	int class;
	int kills;             /* the call does not fail, but kills the supervisor */
	_Atomic int countdown; /* the call that brings it to 0 fails */
	int fired;
	int supervisor; /* process id of trecr-run or trecr-restart, */
	int other;      /* and of who has killed it, when that was another */
};

#endif
