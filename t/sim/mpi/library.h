/*
 * library.h - the parts of a simulated MPI library in MPICH's ABI, libmpi.so.12. Ranks are processes of one
 * machine that share a file (PMI_SIM_FILE; PMI_RANK and PMI_SIZE say which they are): no launcher stays with them.
 *
 * It does all that the standard allows and a program, or what stands between them, may not expect: handles have
 * other values in each process, messages take their time and those of different peers or communicators overtake
 * each other, sends end late and read the program's buffer until then, probes and tests see late what there is,
 * requests and communicators run out (MPICH_SIM_REQUESTS). It has a thread and handlers of signals, which end the
 * program.
 *
 * One lock is held in all of it but while a call waits.
 */
#ifndef T_SIM_MPI_LIBRARY_H
#define T_SIM_MPI_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mpi.h"

#define RANKS_MAX 8

/* ---- library.c ---- */

extern int sim_rank, sim_size;

void sim_lock(void);
void sim_unlock(void);
extern bool sim_in_thread; /* it is the library's own thread that makes progress */
/* In a call that waits: let the thread and others go on for a moment. */
void sim_pause(void);
/* By chance, of this process's own: less than @n. */
unsigned sim_chance(unsigned n);
uint64_t sim_now(void); /* ns */
/* Once in a while what is true is not seen. */
bool sim_seen(uint64_t since);
/* A moment from which on something may be seen. */
uint64_t sim_later(void);
/* What cannot be is told, and the program ends. */
_Noreturn void sim_fatal(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- objects.c ---- */

enum kind {
	COMM = 1,
	GROUP = 2,
	INFO = 7,
	WINDOW = 8,
	REQUEST = 11, /* and messages that were matched */
};

struct group {
	int size, world[RANKS_MAX];
};

struct comm {
	int handle;
	uint64_t context;
	int rank;
	struct group group;
	MPI_Errhandler handler;
	char name[MPI_MAX_OBJECT_NAME];
	unsigned calls; /* collective calls so far */
	unsigned made;  /* communicators of it */
};

int handle_make(enum kind kind, void *object);
/* NULL: there is none. */
void *handle_find(enum kind kind, int handle);
void handle_drop(enum kind kind, int handle);
unsigned handle_count(enum kind kind);
/* Whether one more is to be had. */
bool handle_left(enum kind kind);

struct comm *comm_find(MPI_Comm comm); /* NULL: none */
void comm_make_predefined(void);
/* An error of @comm, NULL: of MPI_COMM_WORLD: its handler is told. @error. */
int comm_failed(struct comm *comm, int error);
/* Bytes of @count elements, -1: no such type. */
int64_t type_bytes(MPI_Datatype type, int count);

/* ---- wire.c ---- */

enum frame_kind {
	EAGER,           /* a message, with its bytes */
	REQUEST_TO_SEND, /* one without, of the request `sender` */
	CLEAR_TO_SEND,   /* its bytes are to go to the request `receiver` */
	DATA,
	MATCHED,   /* a synchronous send has found its receive */
	OPERATION, /* on a window: of the request `sender`, with what goes there */
	OPERATION_DONE,
};

struct frame {
	uint32_t kind, bytes; /* that follow it */
	uint64_t context;
	uint64_t size; /* of the message */
	uint64_t sender,
		receiver;    /* requests; sender 0: nobody waits to hear that it was matched */
	int32_t source, tag; /* source: a rank of the communicator */
	/* Of operations on windows (windows.c): from which byte on of the memory there, and of all that is asked for. */
	uint64_t offset, at;
	int32_t what, type, op, fetches;
};

#define EAGER_MAX   1024
#define ELEMENT_MAX 16

/* Memory that all ranks share; -1: errno. */
int wire_open(const char *path);
void wire_close(void);
/* Bytes are read from @payload when there is room, and then *sent is set, if it is not NULL. */
void wire_send(int world, const struct frame *f, const void *payload, bool *sent);
/* The same of memory that is freed when it has been sent. */
void wire_send_own(int world, const struct frame *f, void *payload);
bool wire_is_empty(void); /* nothing waits for room */
/* Send and receive what can be. */
void wire_progress(void);

/* ---- messages.c ---- */

struct arrival {
	struct arrival *next;
	int from; /* a rank of MPI_COMM_WORLD */
	uint64_t visible;
	struct frame frame;
	char bytes[];
};

struct request {
	struct request *next;
	int handle; /* 0: the library's own, or freed */
	uint64_t id;
	enum { SENDS, RECEIVES, COLLECTIVE, OPERATES } kind;
	MPI_Comm comm;
	bool done, observed, freed, cancelled;
	bool sent, matched; /* a send is done when it is both */
	uint64_t seen;      /* when it may be observed that it is done */
	int error;
	MPI_Status status;
	/* Of a message: its context, peer and tag, and where its bytes are. */
	uint64_t context;
	int peer, tag;
	char *buffer;
	uint64_t room, got;
	struct collective *collective;
	char own[2 * ELEMENT_MAX]; /* what is compared and swapped */
};

/* A message that has come, in the order of its communicator and peer. It is given away. */
void message_arrived(struct arrival *a);
/* What is no message. */
void message_control(const struct arrival *a);
/* Begin one of the library's own, on @context. */
struct request *message_send(
	struct comm *comm, uint64_t context, const void *data, uint64_t size, int to, int tag);
struct request *message_receive(
	struct comm *comm, uint64_t context, void *data, uint64_t room, int from, int tag);
/* A request of the program's. */
struct request *request_new(int kind, struct comm *comm);
void request_done(struct request *r);
void request_drop(struct request *r);
/* All that can be done now. */
void sim_progress(void);

/* ---- collectives.c ---- */

struct collective;
void collectives_progress(void);
void collective_drop(struct collective *c);
/* In calls that hold the lock. */
int collective_barrier(struct comm *comm);
int collective_gather_all(struct comm *comm, const void *in, void *out, uint64_t bytes);
/* @bytes of elements of @type at @from are combined with those at @to. */
void collective_combine(
	MPI_Op op, MPI_Datatype type, void *to, const void *from, uint64_t bytes);

/* ---- windows.c ---- */

/* An operation has come to this rank. It is given away. */
void window_operation(struct arrival *a);
/* A part of @r has been done. */
void window_answered(struct request *r, const struct arrival *a);
/* Do some of what has come. In calls only, not in the library's thread. */
void windows_progress(void);

#endif
