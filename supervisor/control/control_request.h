/*
 * control_request.h - a line that comes to a control socket (control_protocol.h), understood.
 */
#ifndef SUPERVISOR_CONTROL_CONTROL_REQUEST_H
#define SUPERVISOR_CONTROL_CONTROL_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "supervisor/control/checkpoint_request.h"

enum control_kind {
	CONTROL_CHECKPOINT,
	CONTROL_STATUS,
	CONTROL_TURN,
	CONTROL_ARRIVED,
	CONTROL_MPI,
	CONTROL_LAUNCHER
};

struct control_request {
	enum control_kind kind;
	struct checkpoint_request checkpoint;
	uint64_t part;  /* the job's checkpoint of which it is a part, 0: of none */
	int signalled;  /* of a turn: as for turns_ask() */
	bool again;     /* as well */
	bool all;       /* of MPI: ranks */
	int rank, size; /* of a member that is restarted */
	char from[40];  /* the checkpoint that it is restarted from */
	int fd;         /* to the client; closed behind the answer */
};

/* @line is changed. -1: it was not understood. */
int control_request_parse(struct control_request *request, char *line);

#endif
