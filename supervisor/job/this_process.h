/*
 * this_process.h - what a member's file says of its process, so that others can tell it from
 * another one with the same id.
 */
#ifndef SUPERVISOR_JOB_THIS_PROCESS_H
#define SUPERVISOR_JOB_THIS_PROCESS_H

#include "supervisor/job/member_files.h"

/* Fills in process id, start time, host and machine. */
void this_process(struct job_member *m);

/* The machine, since it was booted, and our pid namespace: "BOOT:NAMESPACE". */
void this_machine(char *text, size_t size);
/* Whether @machine is this one, whatever the namespace. */
bool this_boot(const char *machine);

/* As in /proc/PID/stat; 0 when there is none, or it has ended. */
unsigned long long process_start_time(pid_t pid);

#endif
