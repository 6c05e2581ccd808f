/*
 * vdso_code.h - the unused end of a vdso, in which trecr runs system calls, by offsets from where it begins, for C and
 * assembly. (A restart on a kernel with another vdso: state/vdso_restore.h.)
 *
 * First the cave (x86_64.h): a system call, and the way home behind it. Behind that, where
 * there is room, the code that runs several system calls (x86_64_query.S), and what it is told.
 */
#ifndef SUPERVISOR_TARGET_VDSO_CODE_H
#define SUPERVISOR_TARGET_VDSO_CODE_H

#define CAVE_SIZE  192
#define CAVE_HOME  2   /* the way home: behind the system call */
#define CAVE_CLONE 171 /* a system call that makes a process, which ends if it is let run */
#define CAVE_SPARE 190 /* two bytes that are not used */
#define CAVE_QUERY CAVE_SIZE

/* A page of the target: a mark when all calls have returned, and what they have returned. */
#define QUERY_DONE    0
#define QUERY_RESULTS 8

/* Rows of the table: the call's number (0: the end), four arguments, where its result goes. */
#define QUERY_ROW 48

#endif
