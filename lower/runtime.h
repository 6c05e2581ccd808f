/*
 * runtime.h - the lower half's own program, trecr-lower: what its files offer each other.
 *
 * It runs on a libc of its own, in a thread that the program does not know of, with all
 * signals blocked. It must never end the process: what goes wrong is reported to the table.
 */
#ifndef LOWER_RUNTIME_H
#define LOWER_RUNTIME_H

#include "shared/table.h"
#include "shared/address_windows.h"

#define table ((struct lower_table *)LOWER_SHARED)

/* On a thread whose storage an upper thread borrows: that thread's record; else NULL. */
extern __thread struct crossing_head *upper_thread;

/* Make a thread that sleeps and lends its storage. NULL when no more are available. */
struct lower_parked *parked_new(void);
/* All there are, while no thread of the upper half runs. */
struct lower_parked *parked_first(void);

/* The program's variables as the records have them now, for libraries that look at them. 0 or
 * -errno. */
int environment_take(void);

/* The launcher's connection leaves the descriptors of the program for ours. 0 or -errno. */
int connection_take(void);
/* The program exits: has the library end it. 0. */
int connection_end(void);
/* For an order: make table->connection_fd; and take what has been sent to it, if anything has. 0 or -1. */
int connection_offer(void);
int connection_accept(void);

/* Send @question, a line, to the supervisor's control socket. 0: it answers "ok"; -EPERM: "no"; -EAGAIN: "later"; else
 * it could not be asked, or does not know. */
int supervisor_ask(const char *question);

/* Answer other processes, under the name table->share_name. 0 or -errno. */
int share_start(void);
/* Ask the owner: 0, or -errno where it does not answer. *@fd is the driver's descriptor, for the caller to
 * close; -1: none has come. */
int share_fetch(const struct share_request *request, struct share_reply *reply, int *fd);

/* Of cuda/shared_memory.c, on the thread that answers other processes, whatever the program does meanwhile: the
 * driver's result; *@fd is for the caller to close, -1: none. */
int cuda_share(const struct share_request *request, struct share_reply *reply, int *fd);

/* Fill @library's targets. 1: it has Open MPI's ABI; 0: any other; or -ENOENT (then it is not there or does not load). */
int library_load(struct lower_library *library);

/* The function @name of one of the libraries loaded so. NULL: none has it. */
void *library_symbol(const char *name);
/* Have the library that has the function @name do what libraries do when the process exits. It stays where it is, and
 * must not be called any more. */
void library_exit(const char *name);

/* What MPI programs call instead of a library's function of that name that tells the time; NULL: it is none. */
void *mpi_clock_symbol(const char *name);

/* Of mpi/openmpi/library_adapters.c: whether the library behind @handle has Open MPI's ABI; use it, 0 or -1; and what
 * of MPICH's ABI stands for one of its functions or variables. NULL: there is none. */
int openmpi_is(void *handle);
int openmpi_begin(void *handle);
int openmpi_is_used(void);
/* An error that was added as @given is to have the number that it had, also with a later version of MPICH's. */
void openmpi_error_is(int given, int wanted);
void *openmpi_symbol(const char *name);
/* What the program calls in the place of a function that the library lacks, and that calls the error handler; NULL: it
 * has no such. */
void *openmpi_unsupported(const char *name);

/* Carry out orders from now on, on another thread. 0 or -errno. */
int agent_start(void);
/* Of cuda/orders.c: to be called once, before the first order; 0 or -errno. And carry out
 * @order: 0, or -1 behind agent_fail(). */
int orders_start(void);
int orders_carry_out(struct lower_order *order);
/* What the lower half has to do until the next order comes by @order_fd; 0. */
int orders_await(int order_fd);
/* Why an order cannot be carried out; returns -1. */
int agent_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same, for the reason @why (enum lower_result). */
int agent_fail_for(int why, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A line for the user, if the order succeeds; what there is no room for is left out. */
void agent_notice(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* 0; or -1 when the order is not waited for any more: threads of the upper half may run again.
 */
int agent_check_wanted(void);

/* On that thread: the library ends the process with @status. Returns unless a restart is under way, which is told, and ends it. */
void agent_ended(int status);

/* This thread carries out orders. */
extern __thread int is_agent;
/* Printed on that thread: for the program to print. 0, or -1: nobody would. */
int printed_keep(const char *text, size_t size);
/* Whether it may be called from now on, while threads of the upper half run. */
void printed_may_come(int may);

/* Let imports of the library with the dynamic section @dynamic at @base that depend on
 * thread-local storage work on the upper half's FS base too. 0 or -errno. */
int patch_pthread_imports(uintptr_t base, const void *dynamic);

/* Move the code in [@start, @end) to huge pages, as far as whole ones fit, while nobody runs
 * it. When there are none, it stays as it is. 0, or -errno: it is lost, for good. */
int huge_code(uintptr_t start, uintptr_t end);

/* For lower_table.call_upper. */
long callback_post(void *function, const long args[6]);

#endif
