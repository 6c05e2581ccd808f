/*
 * remote_function.h - have a stopped thread call a function of its own process.
 */
#ifndef SUPERVISOR_TARGET_REMOTE_FUNCTION_H
#define SUPERVISOR_TARGET_REMOTE_FUNCTION_H

#include "supervisor/target/process.h"

/*
 * Call the function without arguments at @address in @thread, in a trap stop, on a stack of its
 * own and with all signals blocked; then everything is as it was. It must not rely on anything
 * that another thread may have been stopped in the middle of: no libc. New threads that it
 * makes are let go. Gives up at @deadline_ns.
 *
 * For processes that die with us: when the supervisor ends meanwhile, the thread's stack
 * pointer and vector registers are lost.
 */
int remote_function(struct process *process, struct thread *thread, uint64_t address,
	uint64_t deadline_ns, struct err *e);

#endif
