/*
 * mpi_objects.h - how each kind of MPI object is asked about at a checkpoint, and made again at a restart.
 * Functions that save append to the object's record; functions that make read on in it, in the same
 * order. 0 or -1.
 */
#ifndef LOWER_MPI_MPI_OBJECTS_H
#define LOWER_MPI_MPI_OBJECTS_H

#include "lower/mpi/saved_values.h"

/* What MPICH's ABI gives a value. */
enum {
	MPI_COMM_WORLD = 0x44000000,
	MPI_COMM_SELF = 0x44000001,
	MPI_GROUP_EMPTY = 0x48000000,
	MPI_INFO_NULL = 0x1c000000,
	MPI_ERRORS_RETURN = 0x54000001,
	MPI_MAX_NAME = 256, /* MPI_MAX_OBJECT_NAME, MPI_MAX_INFO_KEY: 128 and 255 */
};

/* The handle of the real library for the program's @handle, and the other way round; what is
 * predefined is itself. */
int mpi_real(const struct mpi_state *s, int handle);
/* The communicator that the program knows as @handle; NULL: there is none any more. */
struct mpi_object *mpi_comm(struct mpi_state *s, int handle);
struct mpi_object *mpi_object_of_real(struct mpi_state *s, int real);

int group_save(struct mpi_saved_values *v, int real);
int group_make(struct saved_reader *r, int *real);
int info_save(struct mpi_saved_values *v, int real);
int info_make(struct saved_reader *r, int *real);
/* The same of an object's hints, of which the library, which may be another one, need not take any. */
int hints_make(struct saved_reader *r, int *real);
int datatype_save(struct mpi_state *s, struct mpi_object *o);
int datatype_make(struct mpi_state *s, struct mpi_object *o, struct saved_reader *r);
/* One that the library has given us a reference to, which is given back. */
int datatype_save_part(struct mpi_state *s, struct mpi_saved_values *v, int real);
/* The same again, committed; if *ours it is to be freed when it has been used. */
int datatype_make_part(struct mpi_state *s, struct saved_reader *r, int *real, int *ours);
/* Set *is to 1 if the datatype or a part of it has been resized to begin behind the first of its data. */
int datatype_begins_behind(int real, int *is);
int comm_save(struct mpi_object *o);
int comm_make(struct saved_reader *r, int *real, int tag);

int session_save(struct mpi_state *s, struct mpi_object *o);
/* *@handler is the program's error handler of it, which is to be set when it has been made. */
int session_make(struct mpi_object *o, struct saved_reader *r, int *handler);

/* What is set of a communicator, window or datatype. */
int settings_save(struct mpi_state *s, struct mpi_object *o);
int settings_make(struct mpi_state *s, struct mpi_object *o, struct saved_reader *r);

/* The program's error handlers, of all that settings_make() was called for and of sessions: when all else has been made. */
int handlers_make(struct mpi_state *s);
/* @handler, the program's, is to be set then. */
int handler_keep(struct mpi_object *o, int handler);

/* What the program has added to the library's errors. */
int errors_make(const struct mpi_state *s);

/* All of them. */
int objects_save(struct mpi_state *s);
/* The same, but only when nothing is begun that may make one, as MPI_Comm_idup is: then mpi_drain() does it, when
 * that is complete. */
int objects_save_unless_begun(struct mpi_state *s);
int objects_make(struct mpi_state *s);

/* CLOCK_MONOTONIC. */
uint64_t mpi_now_ns(void);

#endif
