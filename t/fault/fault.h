/*
 * fault.h - what the library that lets system calls fail (fault.c) shares with the tool that
 * says which (t/tool/faults.c).
 */
#ifndef T_FAULT_FAULT_H
#define T_FAULT_FAULT_H

#include <stdatomic.h>

enum fault_class {
	FAULT_NONE,
	FAULT_OPEN,      /* open, openat */
	FAULT_READ,      /* read, pread, preadv, readlink */
	FAULT_WRITE,     /* write, pwrite, pwritev, ftruncate */
	FAULT_SYNC,      /* fsync and the like */
	FAULT_NAME,      /* rename, mkdir, symlink */
	FAULT_LOOK,      /* stat, statfs */
	FAULT_OWN,       /* chmod, chown */
	FAULT_CONTROL,   /* fcntl, ioctl */
	FAULT_NUMBER,    /* dup, lseek, flock, tee */
	FAULT_MEMORY,    /* mmap, process_vm_readv */
	FAULT_PROCESS,   /* fork, new threads */
	FAULT_WAIT,      /* waitpid */
	FAULT_TRACE,     /* ptrace */
	FAULT_QUEUE,     /* mq_open, mq_timedsend, mq_timedreceive */
	FAULT_SYSV,      /* System V shared memory, semaphores, message queues */
	FAULT_MAKE,      /* pipes, memfds, eventfds, timerfds, epoll, inotify, fanotify */
	FAULT_SOCKET,    /* sockets: made, named, connected, asked, set */
	FAULT_MESSAGE,   /* send, recv, sendmsg, recvmsg */
	FAULT_SETTING,   /* prctl, limits, scheduling, groups and sessions */
	FAULT_NAMESPACE, /* unshare, setns, mount, chroot */
	FAULT_RAW,       /* what goes through syscall(2): clone3, kcmp, pidfd_getfd ... */
	FAULT_CLASSES,
};

#define FAULT_SELF   (-1) /* who makes the call, if that is not the supervisor */
#define FAULT_TRACEE (-2) /* whom the call, ptrace(2), is about */
#define FAULT_HOLD   (-1) /* for a signal: the call waits until there is no fault any more */

struct fault_control {
	int class;
	int phase;      /* enum phase; 0: in any */
	int signal;     /* the call does not fail, but sends this before it is made, to */
	int target;     /* the supervisor (0), this process, FAULT_SELF or FAULT_TRACEE; */
	int stop_calls; /* SIGSTOP: SIGCONT follows that many calls later, 0: at the thaw */
	int continued;  /* and has followed */
	_Atomic int countdown; /* the call that brings it to 0 fails */
	int fired;
	int supervisor; /* process id of trecr-run or trecr-restart, */
	int other;      /* and of the process that killed it, when that was another */
};

#endif
