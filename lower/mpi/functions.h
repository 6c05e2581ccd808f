/*
 * functions.h - the functions of the MPI library that query its objects and make them again. Types are
 * as in MPICH's ABI, where handles are ints.
 */
#ifndef LOWER_MPI_FUNCTIONS_H
#define LOWER_MPI_FUNCTIONS_H

#include <stdint.h>

#define MPI_FUNCTIONS(F)                                                                       \
	F(Comm_rank, (int comm, int *rank))                                                    \
	F(Comm_size, (int comm, int *size))                                                    \
	F(Comm_test_inter, (int comm, int *inter))                                             \
	F(Comm_group, (int comm, int *group))                                                  \
	F(Comm_create_group, (int comm, int group, int tag, int *made))                        \
	F(Comm_remote_group, (int comm, int *group))                                           \
	F(Intercomm_create, (int comm, int leader, int peers, int other, int tag, int *made))  \
	F(Comm_free, (int *comm))                                                              \
	F(Comm_get_name, (int comm, char *name, int *length))                                  \
	F(Comm_set_name, (int comm, const char *name))                                         \
	F(Comm_get_errhandler, (int comm, int *handler))                                       \
	F(Comm_set_errhandler, (int comm, int handler))                                        \
	F(Comm_get_info, (int comm, int *info))                                                \
	F(Comm_set_info, (int comm, int info))                                                 \
	F(Comm_get_attr, (int comm, int key, void *value, int *flag))                          \
	F(Comm_set_attr, (int comm, int key, void *value))                                     \
	F(Comm_create_keyval, (void *copy, void *remove, int *key, void *extra))               \
	F(Topo_test, (int comm, int *what))                                                    \
	F(Cartdim_get, (int comm, int *count))                                                 \
	F(Cart_get, (int comm, int count, int *sizes, int *periods, int *place))               \
	F(Cart_create, (int comm, int count, const int *sizes, const int *periods,             \
			       int reorder, int *made))                                        \
	F(Graphdims_get, (int comm, int *nodes, int *edges))                                   \
	F(Graph_get, (int comm, int nodes, int edges, int *index, int *to))                    \
	F(Graph_create, (int comm, int nodes, const int *index, const int *to, int reorder,    \
				int *made))                                                    \
	F(Dist_graph_neighbors_count, (int comm, int *in, int *out, int *weighted))            \
	F(Dist_graph_neighbors, (int comm, int in, int *sources, int *in_weights, int out,     \
					int *destinations, int *out_weights))                  \
	F(Dist_graph_create_adjacent,                                                          \
		(int comm, int in, const int *sources, const int *in_weights, int out,         \
			const int *destinations, const int *out_weights, int info,             \
			int reorder, int *made))                                               \
	F(Group_size, (int group, int *size))                                                  \
	F(Group_translate_ranks, (int group, int count, const int *of, int other, int *are))   \
	F(Group_incl, (int group, int count, const int *ranks, int *made))                     \
	F(Group_free, (int *group))                                                            \
	F(Add_error_class, (int *number))                                                      \
	F(Add_error_code, (int of, int *number))                                               \
	F(Add_error_string, (int number, const char *text))                                    \
	F(Errhandler_free, (int *handler))                                                     \
	F(Comm_create_errhandler, (void *function, int *handler))                              \
	F(Win_create_errhandler, (void *function, int *handler))                               \
	F(Win_create_keyval, (void *copy, void *remove, int *key, void *extra))                \
	F(Win_create, (void *base, int64_t size, int unit, int info, int comm, int *made))     \
	F(Win_create_dynamic, (int info, int comm, int *made))                                 \
	F(Win_attach, (int window, void *base, int64_t size))                                  \
	F(Win_lock_all, (int assert, int window))                                              \
	F(Win_flush_all, (int window))                                                         \
	F(Win_get_name, (int window, char *name, int *length))                                 \
	F(Win_set_name, (int window, const char *name))                                        \
	F(Win_get_attr, (int window, int key, void *value, int *flag))                         \
	F(Win_set_attr, (int window, int key, void *value))                                    \
	F(Win_get_errhandler, (int window, int *handler))                                      \
	F(Win_set_errhandler, (int window, int handler))                                       \
	F(Win_get_info, (int window, int *info))                                               \
	F(File_create_errhandler, (void *function, int *handler))                              \
	F(Op_create, (void *function, int commutes, int *op))                                  \
	F(Info_create, (int *info))                                                            \
	F(Info_free, (int *info))                                                              \
	F(Info_set, (int info, const char *key, const char *value))                            \
	F(Info_get, (int info, const char *key, int room, char *value, int *flag))             \
	F(Info_get_valuelen, (int info, const char *key, int *length, int *flag))              \
	F(Info_get_nkeys, (int info, int *count))                                              \
	F(Info_get_nthkey, (int info, int n, char *key))                                       \
	F(Type_get_name, (int type, char *name, int *length))                                  \
	F(Type_set_name, (int type, const char *name))                                         \
	F(Type_get_attr, (int type, int key, void *value, int *flag))                          \
	F(Type_set_attr, (int type, int key, void *value))                                     \
	F(Type_create_keyval, (void *copy, void *remove, int *key, void *extra))               \
	F(Type_commit, (int *type))                                                            \
	F(Type_free, (int *type))                                                              \
	F(Type_get_envelope, (int type, int *ints, int *addresses, int *types, int *how))      \
	F(Type_get_contents,                                                                   \
		(int type, int ints, int addresses, int types, int *i, int64_t *a, int *t))    \
	F(Type_dup, (int type, int *made))                                                     \
	F(Type_contiguous, (int count, int type, int *made))                                   \
	F(Type_vector, (int count, int length, int stride, int type, int *made))               \
	F(Type_create_hvector, (int count, int length, int64_t stride, int type, int *made))   \
	F(Type_indexed, (int count, const int *lengths, const int *at, int type, int *made))   \
	F(Type_create_hindexed,                                                                \
		(int count, const int *lengths, const int64_t *at, int type, int *made))       \
	F(Type_create_indexed_block,                                                           \
		(int count, int length, const int *at, int type, int *made))                   \
	F(Type_create_hindexed_block,                                                          \
		(int count, int length, const int64_t *at, int type, int *made))               \
	F(Type_create_struct, (int count, const int *lengths, const int64_t *at,               \
				      const int *types, int *made))                            \
	F(Type_create_subarray, (int count, const int *sizes, const int *parts,                \
					const int *starts, int order, int type, int *made))    \
	F(Type_create_darray, (int size, int rank, int count, const int *sizes,                \
				      const int *how, const int *arguments, const int *ranks,  \
				      int order, int type, int *made))                         \
	F(Type_create_resized, (int type, int64_t lower, int64_t extent, int *made))           \
	F(Type_create_f90_real, (int precision, int range, int *made))                         \
	F(Type_create_f90_complex, (int precision, int range, int *made))                      \
	F(Type_create_f90_integer, (int range, int *made))                                     \
	F(Type_size, (int type, int *bytes))                                                   \
	F(Type_get_true_extent, (int type, int64_t *first, int64_t *extent))                   \
	F(Error_class, (int code, int *class))                                                 \
	F(Test, (int *request, int *flag, int *status))                                        \
	F(Allreduce, (const void *in, void *out, int count, int type, int op, int comm))       \
	F(Grequest_complete, (int request))                                                    \
	F(Start, (int *request))                                                               \
	F(Improbe, (int source, int tag, int comm, int *flag, int *message, int *status))      \
	F(Iprobe, (int source, int tag, int comm, int *flag, int *status))                     \
	F(Imrecv, (void *to, int count, int type, int *message, int *request))                 \
	F(Isend, (const void *from, int count, int type, int to, int tag, int comm,            \
			 int *request))                                                        \
	F(Recv, (void *to, int count, int type, int source, int tag, int comm, int *status))   \
	F(Irecv, (void *to, int count, int type, int source, int tag, int comm, int *request)) \
	F(Recv_init,                                                                           \
		(void *to, int count, int type, int source, int tag, int comm, int *request))  \
	F(Send_init,                                                                           \
		(void *from, int count, int type, int to, int tag, int comm, int *request))    \
	F(Bsend_init,                                                                          \
		(void *from, int count, int type, int to, int tag, int comm, int *request))    \
	F(Ssend_init,                                                                          \
		(void *from, int count, int type, int to, int tag, int comm, int *request))    \
	F(Rsend_init,                                                                          \
		(void *from, int count, int type, int to, int tag, int comm, int *request))

/* Since MPI 4.0: all NULL in older libraries. */
#define MPI_LARGE_FUNCTIONS(F)                                                                 \
	F(Type_get_envelope_c, (int type, int64_t *ints, int64_t *addresses, int64_t *counts,  \
				       int64_t *types, int *how))                              \
	F(Type_get_contents_c, (int type, int64_t ints, int64_t addresses, int64_t counts,     \
				       int64_t types, int *i, int64_t *a, int64_t *c, int *t)) \
	F(Type_contiguous_c, (int64_t count, int type, int *made))                             \
	F(Type_vector_c, (int64_t count, int64_t length, int64_t stride, int type, int *made)) \
	F(Type_create_hvector_c,                                                               \
		(int64_t count, int64_t length, int64_t stride, int type, int *made))          \
	F(Type_indexed_c, (int64_t count, const int64_t *lengths, const int64_t *at, int type, \
				  int *made))                                                  \
	F(Type_create_hindexed_c, (int64_t count, const int64_t *lengths, const int64_t *at,   \
					  int type, int *made))                                \
	F(Type_create_indexed_block_c,                                                         \
		(int64_t count, int64_t length, const int64_t *at, int type, int *made))       \
	F(Type_create_hindexed_block_c,                                                        \
		(int64_t count, int64_t length, const int64_t *at, int type, int *made))       \
	F(Type_create_struct_c, (int64_t count, const int64_t *lengths, const int64_t *at,     \
					const int *types, int *made))                          \
	F(Type_create_subarray_c,                                                              \
		(int count, const int64_t *sizes, const int64_t *parts, const int64_t *starts, \
			int order, int type, int *made))                                       \
	F(Type_create_darray_c, (int size, int rank, int count, const int64_t *sizes,          \
					const int *how, const int *arguments,                  \
					const int *ranks, int order, int type, int *made))     \
	F(Type_create_resized_c, (int type, int64_t lower, int64_t extent, int *made))

struct mpi_functions {
#define F(name, parameters) int(*name) parameters;
	MPI_FUNCTIONS(F)
	MPI_LARGE_FUNCTIONS(F)
#undef F
	/* Of MPICH's own, for Fortran; and of large counts. May be NULL. */
	int (*get_typed)(int object, int key, void *value, int *flag, int type);
	int (*set_typed)(int object, int key, void *value, int type);
	int (*type_get_typed)(int object, int key, void *value, int *flag, int type);
	int (*type_set_typed)(int object, int key, void *value, int type);
	int (*win_get_typed)(int object, int key, void *value, int *flag, int type);
	int (*win_set_typed)(int object, int key, void *value, int type);
	int (*Win_create_c)(
		void *base, int64_t size, int64_t unit, int info, int comm, int *made);
	int (*Op_create_c)(void *function, int commutes, int *op);
	int (*Session_create_errhandler)(void *function, int *handler);
	int (*Session_init)(int info, int handler, int *session);
	int (*Session_get_info)(int session, int *info);
	int (*Session_get_errhandler)(int session, int *handler);
	int (*Session_set_errhandler)(int session, int handler);
	int (*Imrecv_c)(void *to, int64_t count, int type, int *message, int *request);
	int (*Irecv_c)(
		void *to, int64_t count, int type, int source, int tag, int comm, int *request);
};

extern struct mpi_functions mpi;

/* Find them. 0 or -1. */
int mpi_functions_find(void);

/* 0, or -1 with the function's name and what it has returned. */
int mpi_failed(const char *name, int r);
#define MPI_DO(name, ...) mpi_failed("MPI_" #name, mpi.name(__VA_ARGS__))

#endif
