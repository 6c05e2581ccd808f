/*
 * state/pending_faults.h - a thread that was stopped between a fault and the handler for its
 * signal.
 */
#ifndef SUPERVISOR_STATE_PENDING_FAULTS_H
#define SUPERVISOR_STATE_PENDING_FAULTS_H

#include "supervisor/state/new_process.h"

/*
 * Thread number @i of r, which has its registers and stands in a trap stop, may have the signal
 * of a fault waiting for it, which is queued later: let it make the same fault once more, so
 * that the handler finds the processor's trap number, error code and address (uc_mcontext).
 * Only where that changes nothing. *ran: its registers have to be set again.
 */
int restore_fault_again(struct new_process *np, size_t i, bool *ran);

#endif
