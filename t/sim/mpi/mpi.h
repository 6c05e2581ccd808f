/*
 * mpi.h - what the simulated library (t/sim/mpi) has of MPI, in MPICH's ABI. Programs of the tests are compiled
 * with it where no MPI is installed.
 */
#ifndef SIM_MPI_H
#define SIM_MPI_H

typedef int MPI_Comm, MPI_Group, MPI_Datatype, MPI_Op, MPI_Request, MPI_Message, MPI_Info,
	MPI_Errhandler, MPI_Win;
typedef long MPI_Aint;

typedef struct {
	int count_lo, count_hi_and_cancelled, MPI_SOURCE, MPI_TAG, MPI_ERROR;
} MPI_Status;

#define MPI_STATUS_IGNORE   ((MPI_Status *)1)
#define MPI_STATUSES_IGNORE ((MPI_Status *)1)
#define MPI_IN_PLACE        ((void *)-1)

enum {
	MPI_COMM_NULL = 0x04000000,
	MPI_COMM_WORLD = 0x44000000,
	MPI_COMM_SELF = 0x44000001,
	MPI_GROUP_NULL = 0x08000000,
	MPI_GROUP_EMPTY = 0x48000000,
	MPI_CHAR = 0x4c000101,
	MPI_BYTE = 0x4c00010d,
	MPI_INT = 0x4c000405,
	MPI_LONG = 0x4c000807,
	MPI_DOUBLE = 0x4c00080b,
	MPI_INT64_T = 0x4c00083a,
	MPI_ERRHANDLER_NULL = 0x14000000,
	MPI_ERRORS_ARE_FATAL = 0x54000000,
	MPI_ERRORS_RETURN = 0x54000001,
	MPI_OP_NULL = 0x18000000,
	MPI_MAX = 0x58000001,
	MPI_MIN = 0x58000002,
	MPI_SUM = 0x58000003,
	MPI_NO_OP = 0x5800000e,
	MPI_REPLACE = 0x5800000d,
	MPI_INFO_NULL = 0x1c000000,
	MPI_WIN_NULL = 0x20000000,
	MPI_REQUEST_NULL = 0x2c000000,
	MPI_MESSAGE_NULL = MPI_REQUEST_NULL,
	MPI_TAG_UB = 0x64400001,
	MPI_PROC_NULL = -1,
	MPI_ANY_SOURCE = -2,
	MPI_ANY_TAG = -1,
	MPI_UNDEFINED = -32766,
	MPI_THREAD_SINGLE = 0,
	MPI_THREAD_MULTIPLE = 3,
	MPI_SUCCESS = 0,
	MPI_ERR_COUNT = 2,
	MPI_ERR_TYPE = 3,
	MPI_ERR_TAG = 4,
	MPI_ERR_COMM = 5,
	MPI_ERR_RANK = 6,
	MPI_ERR_GROUP = 8,
	MPI_ERR_OP = 9,
	MPI_ERR_TRUNCATE = 14,
	MPI_ERR_OTHER = 15,
	MPI_ERR_IN_STATUS = 17,
	MPI_ERR_PENDING = 18,
	MPI_ERR_REQUEST = 19,
	MPI_ERR_WIN = 45,
	MPI_ERR_RMA_SYNC = 50,
	MPI_MAX_OBJECT_NAME = 128,
	MPI_LOCK_EXCLUSIVE = 234,
	MPI_LOCK_SHARED = 235,
	MPI_MODE_NOCHECK = 1024,
	MPI_MODE_NOSUCCEED = 16384,
	MPI_IDENT = 0,
	MPI_CONGRUENT = 1,
	MPI_SIMILAR = 2,
	MPI_UNEQUAL = 3,
};

int MPI_Init(int *argc, char ***argv);
int MPI_Init_thread(int *argc, char ***argv, int required, int *provided);
int MPI_Query_thread(int *provided);
int MPI_Is_thread_main(int *flag);
int MPI_Finalize(void);
int MPI_Abort(MPI_Comm comm, int status);
int MPI_Error_class(int code, int *class_of_it);

int MPI_Comm_rank(MPI_Comm comm, int *rank);
int MPI_Comm_size(MPI_Comm comm, int *size);
int MPI_Comm_test_inter(MPI_Comm comm, int *inter);
int MPI_Comm_group(MPI_Comm comm, MPI_Group *group);
int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *made);
int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *made);
int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *made);
int MPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *made);
int MPI_Comm_compare(MPI_Comm a, MPI_Comm b, int *result);
int MPI_Comm_free(MPI_Comm *comm);
int MPI_Comm_get_name(MPI_Comm comm, char *name, int *length);
int MPI_Comm_set_name(MPI_Comm comm, const char *name);
int MPI_Comm_get_attr(MPI_Comm comm, int key, void *value, int *flag);
int MPI_Comm_get_errhandler(MPI_Comm comm, MPI_Errhandler *handler);
int MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler);
int MPI_Comm_call_errhandler(MPI_Comm comm, int error);
int MPI_Errhandler_free(MPI_Errhandler *handler);
int MPI_Comm_get_info(MPI_Comm comm, MPI_Info *info);
int MPI_Comm_set_info(MPI_Comm comm, MPI_Info info);
int MPI_Topo_test(MPI_Comm comm, int *what);

int MPI_Group_size(MPI_Group group, int *size);
int MPI_Group_translate_ranks(
	MPI_Group group, int count, const int *ranks, MPI_Group other, int *others);
int MPI_Group_incl(MPI_Group group, int count, const int *ranks, MPI_Group *made);
int MPI_Group_free(MPI_Group *group);

int MPI_Info_create(MPI_Info *info);
int MPI_Info_free(MPI_Info *info);
int MPI_Info_get_nkeys(MPI_Info info, int *count);
int MPI_Type_size(MPI_Datatype type, int *bytes);
int MPI_Get_count(const MPI_Status *status, MPI_Datatype type, int *count);

int MPI_Send(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm);
int MPI_Ssend(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm);
int MPI_Recv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
	MPI_Status *status);
int MPI_Sendrecv(const void *from, int count, MPI_Datatype type, int to, int tag, void *buffer,
	int room, MPI_Datatype received, int source, int expected, MPI_Comm comm,
	MPI_Status *status);
int MPI_Isend(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
	MPI_Request *request);
int MPI_Issend(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
	MPI_Request *request);
int MPI_Irsend(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
	MPI_Request *request);
int MPI_Irecv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
	MPI_Request *request);
int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status);
int MPI_Testall(int count, MPI_Request *requests, int *flag, MPI_Status *statuses);
int MPI_Testany(int count, MPI_Request *requests, int *which, int *flag, MPI_Status *status);
int MPI_Testsome(
	int count, MPI_Request *requests, int *complete, int *which, MPI_Status *statuses);
int MPI_Wait(MPI_Request *request, MPI_Status *status);
int MPI_Waitall(int count, MPI_Request *requests, MPI_Status *statuses);
int MPI_Waitany(int count, MPI_Request *requests, int *which, MPI_Status *status);
int MPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status);
int MPI_Request_free(MPI_Request *request);
int MPI_Cancel(MPI_Request *request);
int MPI_Iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status);
int MPI_Probe(int source, int tag, MPI_Comm comm, MPI_Status *status);
int MPI_Improbe(int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message,
	MPI_Status *status);
int MPI_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status);
int MPI_Imrecv(
	void *buffer, int count, MPI_Datatype type, MPI_Message *message, MPI_Request *request);
int MPI_Mrecv(
	void *buffer, int count, MPI_Datatype type, MPI_Message *message, MPI_Status *status);

int MPI_Barrier(MPI_Comm comm);
int MPI_Bcast(void *data, int count, MPI_Datatype type, int root, MPI_Comm comm);
int MPI_Reduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, int root,
	MPI_Comm comm);
int MPI_Allreduce(
	const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm);
int MPI_Allgather(const void *in, int count, MPI_Datatype type, void *out, int out_count,
	MPI_Datatype out_type, MPI_Comm comm);
int MPI_Ibarrier(MPI_Comm comm, MPI_Request *request);
int MPI_Iallreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op,
	MPI_Comm comm, MPI_Request *request);

int MPI_Win_create(
	void *base, MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm, MPI_Win *win);
int MPI_Win_allocate(
	MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win);
int MPI_Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win *win);
int MPI_Win_attach(MPI_Win win, void *base, MPI_Aint bytes);
int MPI_Win_detach(MPI_Win win, const void *base);
int MPI_Win_free(MPI_Win *win);
int MPI_Win_fence(int assert, MPI_Win win);
int MPI_Win_lock(int type, int target, int assert, MPI_Win win);
int MPI_Win_lock_all(int assert, MPI_Win win);
int MPI_Win_unlock(int target, MPI_Win win);
int MPI_Win_unlock_all(MPI_Win win);
int MPI_Win_flush(int target, MPI_Win win);
int MPI_Win_flush_all(MPI_Win win);
int MPI_Win_flush_local(int target, MPI_Win win);
int MPI_Win_flush_local_all(MPI_Win win);
int MPI_Win_sync(MPI_Win win);
int MPI_Win_post(MPI_Group group, int assert, MPI_Win win);
int MPI_Win_start(MPI_Group group, int assert, MPI_Win win);
int MPI_Win_complete(MPI_Win win);
int MPI_Win_wait(MPI_Win win);
int MPI_Win_get_name(MPI_Win win, char *name, int *length);
int MPI_Win_set_name(MPI_Win win, const char *name);
int MPI_Win_get_attr(MPI_Win win, int key, void *value, int *flag);
int MPI_Win_get_errhandler(MPI_Win win, MPI_Errhandler *handler);
int MPI_Win_set_errhandler(MPI_Win win, MPI_Errhandler handler);
int MPI_Win_call_errhandler(MPI_Win win, int error);
int MPI_Win_get_info(MPI_Win win, MPI_Info *info);

int MPI_Put(const void *from, int count, MPI_Datatype type, int target, MPI_Aint at, int there,
	MPI_Datatype type_there, MPI_Win win);
int MPI_Rput(const void *from, int count, MPI_Datatype type, int target, MPI_Aint at, int there,
	MPI_Datatype type_there, MPI_Win win, MPI_Request *request);
int MPI_Get(void *result, int count, MPI_Datatype type, int target, MPI_Aint at, int there,
	MPI_Datatype type_there, MPI_Win win);
int MPI_Rget(void *result, int count, MPI_Datatype type, int target, MPI_Aint at, int there,
	MPI_Datatype type_there, MPI_Win win, MPI_Request *request);
int MPI_Accumulate(const void *from, int count, MPI_Datatype type, int target, MPI_Aint at,
	int there, MPI_Datatype type_there, MPI_Op op, MPI_Win win);
int MPI_Raccumulate(const void *from, int count, MPI_Datatype type, int target, MPI_Aint at,
	int there, MPI_Datatype type_there, MPI_Op op, MPI_Win win, MPI_Request *request);
int MPI_Get_accumulate(const void *from, int count, MPI_Datatype type, void *result,
	int results, MPI_Datatype result_type, int target, MPI_Aint at, int there,
	MPI_Datatype type_there, MPI_Op op, MPI_Win win);
int MPI_Rget_accumulate(const void *from, int count, MPI_Datatype type, void *result,
	int results, MPI_Datatype result_type, int target, MPI_Aint at, int there,
	MPI_Datatype type_there, MPI_Op op, MPI_Win win, MPI_Request *request);
int MPI_Fetch_and_op(const void *from, void *result, MPI_Datatype type, int target, MPI_Aint at,
	MPI_Op op, MPI_Win win);
int MPI_Compare_and_swap(const void *from, const void *compared, void *result,
	MPI_Datatype type, int target, MPI_Aint at, MPI_Win win);

#endif
