/*
 * memory/aio_polls.h - requests of asynchronous I/O that wait for files (IOCB_CMD_POLL).
 */
#ifndef SUPERVISOR_MEMORY_AIO_POLLS_H
#define SUPERVISOR_MEMORY_AIO_POLLS_H

#include "supervisor/state/dump.h"

/* Requests that wait for files, when all regions are known. The program keeps them. */
int dump_aio_polls(struct dump *d, struct err *e);

#endif
