/*
 * control_request.c - which request a line is, and what requests of a job's members say; the words of a
 * request for a checkpoint are read in checkpoint_request.c.
 */
#include "supervisor/control/control_request.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What members of a job ask each other. */
static bool parse_of_job(struct control_request *request, const char *line)
{
	int end = 0;

	if (sscanf(line, "turn %d%n", &request->signalled, &end) == 1) {
		request->kind = CONTROL_TURN;
		request->again = !strcmp(line + end, " again");
		return !line[end] || request->again;
	}
	if (sscanf(line, "arrived %d %d %39s%n", &request->rank, &request->size, request->from,
		    &end) != 3 ||
		line[end])
		return false;
	request->kind = CONTROL_ARRIVED;
	return true;
}

int control_request_parse(struct control_request *request, char *line)
{
	char *words;
	int end = 0;

	memset(request, 0, sizeof(*request));
	if (sscanf(line, "part=%" SCNu64 " %n", &request->part, &end) == 1)
		line += end;
	if (parse_of_job(request, line))
		return 0;
	if (!strcmp(line, "status")) {
		request->kind = CONTROL_STATUS;
		return 0;
	}
	if (!strcmp(line, "launcher")) {
		request->kind = CONTROL_LAUNCHER;
		return 0;
	}
	request->all = !strcmp(line, "mpi all");
	if (request->all || !strcmp(line, "mpi begun")) {
		request->kind = CONTROL_MPI;
		return 0;
	}
	request->kind = CONTROL_CHECKPOINT;
	words = strchrnul(line, ' ');
	if (words - line != strlen("checkpoint") || strncmp(line, "checkpoint", words - line))
		return -1;
	return checkpoint_request_parse(&request->checkpoint, words);
}
