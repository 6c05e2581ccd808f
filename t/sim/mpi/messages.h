/* messages.h - what messages and requests know of each other. */
#ifndef T_SIM_MPI_MESSAGES_H
#define T_SIM_MPI_MESSAGES_H

#include "library.h"

extern struct request *sim_requests; /* in the order in which they were made */

/* Sends whose bytes are away are done, and freed requests that are done are no more. */
void requests_sweep(void);

#endif
