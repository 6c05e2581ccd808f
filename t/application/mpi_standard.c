/*
 * mpi_standard.c - what the standard ABI of MPI 5 and that of MPICH have otherwise: constants that go into calls and come
 * out of them, statuses, numbers of handles, buffers and datatypes with large counts, what the interface for tools says,
 * and the functions that tell of the ABI. Prints "rank N of M: done".
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_short_program.h"

/* ---- constants ---- */

static void nobody(void)
{
	MPI_Status s = {.MPI_SOURCE = 77, .MPI_TAG = 77, .MPI_ERROR = 77};
	int in = 5, count = -1, at[2], no_ranks[2] = {MPI_PROC_NULL, 0}, before, next;
	MPI_Message m;
	MPI_Group group;
	MPI_Comm line;

	CHECK(!MPI_Recv(&in, 1, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &s));
	CHECK(s.MPI_SOURCE == MPI_PROC_NULL && s.MPI_TAG == MPI_ANY_TAG && s.MPI_ERROR == 77);
	CHECK(!MPI_Get_count(&s, MPI_INT, &count) && count == 0 && in == 5);
	CHECK(!MPI_Mprobe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &m, &s) &&
		m == MPI_MESSAGE_NO_PROC);
	CHECK(!MPI_Mrecv(&in, 1, MPI_INT, &m, &s) && m == MPI_MESSAGE_NULL);
	CHECK(!MPI_Comm_group(MPI_COMM_WORLD, &group));
	CHECK(!MPI_Group_translate_ranks(group, 2, no_ranks, group, at));
	CHECK(at[0] == MPI_PROC_NULL && at[1] == 0);
	CHECK(!MPI_Group_compare(group, MPI_GROUP_EMPTY, &count) && count == MPI_UNEQUAL);
	CHECK(!MPI_Group_free(&group) && group == MPI_GROUP_NULL);
	CHECK(!MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &(int){0}, 0, &line));
	CHECK(!MPI_Cart_shift(line, 0, 1, &before, &next));
	CHECK(before == (rank ? rank - 1 : MPI_PROC_NULL));
	CHECK(next == (rank < size - 1 ? rank + 1 : MPI_PROC_NULL));
	CHECK(!MPI_Comm_compare(line, MPI_COMM_WORLD, &count) && count == MPI_CONGRUENT);
	CHECK(!MPI_Topo_test(line, &count) && count == MPI_CART && !MPI_Comm_free(&line));
	CHECK(!MPI_Topo_test(MPI_COMM_WORLD, &count) && count == MPI_UNDEFINED);
	CHECK(!MPI_Comm_compare(MPI_COMM_SELF, MPI_COMM_SELF, &count) && count == MPI_IDENT);
	CHECK(!MPI_Comm_split_type(
		      MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &line) &&
		!MPI_Comm_free(&line));
}

/* Any tag, and statuses that the program makes. */
static void tags(void)
{
	int next = (rank + 1) % size, before = (rank + size - 1) % size, in = -1, tag = -1;
	MPI_Request r;
	MPI_Status s;

	CHECK(!MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &r));
	CHECK(!MPI_Send(&rank, 1, MPI_INT, next, 31, MPI_COMM_WORLD) && !MPI_Wait(&r, &s));
	CHECK(r == MPI_REQUEST_NULL && s.MPI_SOURCE == before && s.MPI_TAG == 31);
	CHECK(in == before && !MPI_Status_get_tag(&s, &tag) && tag == 31);
	CHECK(!MPI_Status_set_tag(&s, MPI_ANY_TAG) && s.MPI_TAG == MPI_ANY_TAG);
	CHECK(!MPI_Status_get_tag(&s, &tag) && tag == MPI_ANY_TAG);
	CHECK(!MPI_Status_set_source(&s, MPI_PROC_NULL) && s.MPI_SOURCE == MPI_PROC_NULL);
	CHECK(!MPI_Status_set_error(&s, MPI_ERR_REQUEST) && s.MPI_ERROR == MPI_ERR_REQUEST);
	CHECK(!MPI_Status_set_elements_c(&s, MPI_INT, 9) && !MPI_Get_count(&s, MPI_INT, &in));
	CHECK(in == 9);
	CHECK(!MPI_Barrier(MPI_COMM_WORLD));
}

static void errors(void)
{
	int class = -1, added, code, length, r;
	char text[MPI_MAX_ERROR_STRING];

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	r = MPI_Send(&r, 1, MPI_INT, size, 0, MPI_COMM_WORLD);
	CHECK(r && !MPI_Error_class(r, &class) && class == MPI_ERR_RANK);
	r = MPI_Bcast(&r, 1, MPI_INT, size, MPI_COMM_WORLD);
	CHECK(r && !MPI_Error_class(r, &class) && class == MPI_ERR_ROOT);
	r = MPI_Barrier(MPI_COMM_NULL);
	CHECK(r && !MPI_Error_class(r, &class) && class == MPI_ERR_COMM);
	CHECK(!MPI_Error_string(MPI_ERR_TRUNCATE, text, &length) && length > 0);
	CHECK(!MPI_Add_error_class(&added) && added > MPI_ERR_LASTCODE);
	CHECK(!MPI_Add_error_code(added, &code) && !MPI_Error_class(code, &class) &&
		class == added);
	CHECK(!MPI_Add_error_string(code, "ours") && !MPI_Error_string(code, text, &length));
	CHECK(!strcmp(text, "ours"));
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

static void told(void)
{
	int flag = 0, *value, level, major = -1, minor = -1;
	char size_of[8];
	MPI_Info info;

	CHECK(!MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag) && flag &&
		*value >= 32767);
	CHECK(!MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_IO, &value, &flag) && flag);
	CHECK(*value == MPI_ANY_SOURCE);
	CHECK(!MPI_Query_thread(&level) && level == MPI_THREAD_SERIALIZED);
	CHECK(!MPI_Abi_get_version(&major, &minor) && major == MPI_ABI_VERSION &&
		minor == MPI_ABI_SUBVERSION);
	CHECK(!MPI_Abi_get_info(&info) && info != MPI_INFO_NULL);
	CHECK(!MPI_Info_get_string(info, "mpi_count_size", &(int){8}, size_of, &flag) && flag);
	CHECK(!strcmp(size_of, "8") && !MPI_Info_free(&info) && info == MPI_INFO_NULL);
}

/* ---- datatypes ---- */

static void parts(void)
{
	int sizes[2] = {6, 5}, wide[2] = {2, 3}, starts[2] = {1, 2}, n[4], i[16];
	int how[2] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_NONE};
	int arguments[2] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG},
	    ranks[2] = {1, 1};
	MPI_Aint a[1];
	MPI_Datatype t, of[1];

	CHECK(!MPI_Type_create_subarray(
		2, sizes, wide, starts, MPI_ORDER_FORTRAN, MPI_LOGICAL, &t));
	CHECK(!MPI_Type_get_envelope(t, &n[0], &n[1], &n[2], &n[3]) &&
		n[3] == MPI_COMBINER_SUBARRAY);
	CHECK(!MPI_Type_get_contents(t, n[0], n[1], n[2], i, a, of));
	CHECK(of[0] == MPI_LOGICAL && i[0] == 2 && i[7] == MPI_ORDER_FORTRAN &&
		!MPI_Type_free(&t));
	CHECK(t == MPI_DATATYPE_NULL);
	CHECK(!MPI_Type_create_darray(
		1, 0, 2, sizes, how, arguments, ranks, MPI_ORDER_C, MPI_DOUBLE_INT, &t));
	CHECK(!MPI_Type_get_contents(t, 12, 0, 1, i, a, of) && of[0] == MPI_DOUBLE_INT);
	CHECK(i[5] == MPI_DISTRIBUTE_CYCLIC && i[6] == MPI_DISTRIBUTE_NONE);
	CHECK(i[7] == MPI_DISTRIBUTE_DFLT_DARG && i[11] == MPI_ORDER_C && !MPI_Type_free(&t));
	CHECK(!MPI_Type_get_envelope(MPI_INT, &n[0], &n[1], &n[2], &n[3]) &&
		n[3] == MPI_COMBINER_NAMED);
	CHECK(!MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, &t) && t == MPI_REAL8);
}

static void large_parts(void)
{
	MPI_Count sizes[2] = {6, 5}, wide[2] = {2, 3}, starts[2] = {1, 2}, n[4], c[16];
	int how[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_NONE}, combiner, i[16];
	int arguments[2] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG},
	    ranks[2] = {1, 1};
	MPI_Aint a[1];
	MPI_Datatype t, of[1];

	CHECK(!MPI_Type_create_subarray_c(
		2, sizes, wide, starts, MPI_ORDER_FORTRAN, MPI_COMPLEX16, &t));
	CHECK(!MPI_Type_get_envelope_c(t, &n[0], &n[1], &n[2], &n[3], &combiner));
	CHECK(combiner == MPI_COMBINER_SUBARRAY && n[2] == 6);
	CHECK(!MPI_Type_get_contents_c(t, n[0], n[1], n[2], n[3], i, a, c, of));
	CHECK(of[0] == MPI_COMPLEX16 && i[0] == 2 && i[1] == MPI_ORDER_FORTRAN && c[5] == 2);
	CHECK(!MPI_Type_free(&t));
	CHECK(!MPI_Type_create_darray_c(
		1, 0, 2, sizes, how, arguments, ranks, MPI_ORDER_C, MPI_2INTEGER, &t));
	CHECK(!MPI_Type_get_envelope_c(t, &n[0], &n[1], &n[2], &n[3], &combiner));
	CHECK(combiner == MPI_COMBINER_DARRAY);
	CHECK(!MPI_Type_get_contents_c(t, n[0], n[1], n[2], n[3], i, a, c, of));
	CHECK(of[0] == MPI_2INTEGER && i[0] == 1 && i[2] == 2);
	CHECK(i[3] == MPI_DISTRIBUTE_BLOCK && i[4] == MPI_DISTRIBUTE_NONE);
	CHECK(i[5] == MPI_DISTRIBUTE_DFLT_DARG && i[6] == MPI_DISTRIBUTE_DFLT_DARG);
	CHECK(i[n[0] - 1] == MPI_ORDER_C && !MPI_Type_free(&t));
}

/* All datatypes of the ABI that have a size. */
static void sizes(void)
{
	static const struct {
		MPI_Datatype type;
		int size;
	} known[] = {{MPI_CHAR, 1}, {MPI_SHORT, 2}, {MPI_INT, 4}, {MPI_LONG, 8}, {MPI_FLOAT, 4},
		{MPI_DOUBLE, 8}, {MPI_LONG_DOUBLE, 16}, {MPI_WCHAR, 4}, {MPI_C_BOOL, 1},
		{MPI_INT8_T, 1}, {MPI_UINT16_T, 2}, {MPI_INT32_T, 4}, {MPI_UINT64_T, 8},
		{MPI_AINT, 8}, {MPI_COUNT, 8}, {MPI_OFFSET, 8}, {MPI_C_FLOAT_COMPLEX, 8},
		{MPI_C_DOUBLE_COMPLEX, 16}, {MPI_DOUBLE_INT, 12}, {MPI_2INT, 8},
		{MPI_FLOAT_INT, 8}, {MPI_BYTE, 1}, {MPI_PACKED, 1}};
	int size_of = -1;

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		CHECK(!MPI_Type_size(known[i].type, &size_of) && size_of == known[i].size);
}

/* ---- numbers of handles ---- */

static void numbers(void)
{
	MPI_Comm copy;
	MPI_File file;

	CHECK(MPI_Comm_fromint(MPI_Comm_toint(MPI_COMM_WORLD)) == MPI_COMM_WORLD);
	CHECK(MPI_Comm_toint(MPI_COMM_NULL) == 0x100 && MPI_Op_toint(MPI_SUM) == 0x21);
	CHECK(MPI_Type_fromint(MPI_Type_toint(MPI_INTEGER)) == MPI_INTEGER);
	CHECK(MPI_File_fromint(MPI_File_toint(MPI_FILE_NULL)) == MPI_FILE_NULL);
	CHECK(!MPI_Comm_dup(MPI_COMM_WORLD, &copy));
	CHECK(MPI_Comm_fromint(MPI_Comm_toint(copy)) == copy);
	CHECK(!MPI_Comm_free(&copy) && copy == MPI_COMM_NULL);
	CHECK(!MPI_File_open(MPI_COMM_SELF, "/dev/null", MPI_MODE_RDWR, MPI_INFO_NULL, &file));
	CHECK(MPI_File_fromint(MPI_File_toint(file)) == file && !MPI_File_close(&file));
	CHECK(file == MPI_FILE_NULL);
}

/* ---- files ---- */

static void files(void)
{
	char name[64];
	int mode = -1, in = -1, out = 70 + rank;
	MPI_Offset place = -1;
	MPI_File file;

	snprintf(name, sizeof(name), "standard.%d", rank);
	CHECK(!MPI_File_open(MPI_COMM_SELF, name,
		MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
		&file));
	CHECK(!MPI_File_get_amode(file, &mode));
	CHECK(mode == (MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE));
	CHECK(!MPI_File_write_at(file, 8, &out, 1, MPI_INT, MPI_STATUS_IGNORE));
	CHECK(!MPI_File_seek(file, -4, MPI_SEEK_END) && !MPI_File_get_position(file, &place) &&
		place == 8);
	CHECK(!MPI_File_seek(file, 2, MPI_SEEK_SET) && !MPI_File_seek(file, 6, MPI_SEEK_CUR));
	CHECK(!MPI_File_read(file, &in, 1, MPI_INT, MPI_STATUS_IGNORE) && in == out);
	CHECK(!MPI_File_close(&file));
}

/* ---- attributes and callbacks ---- */

static int deleted;

static int delete_value(MPI_Comm comm, int key, void *value, void *extra)
{
	CHECK(extra == &deleted && value == &size);
	deleted++;
	return MPI_SUCCESS;
}

static void attributes(void)
{
	MPI_Comm one, two;
	void *value = NULL;
	int key, flag = 0;

	CHECK(!MPI_Comm_create_keyval(MPI_COMM_DUP_FN, delete_value, &key, &deleted));
	CHECK(!MPI_Comm_dup(MPI_COMM_SELF, &one) && !MPI_Comm_set_attr(one, key, &size));
	CHECK(!MPI_Comm_dup(one, &two) && !MPI_Comm_get_attr(two, key, &value, &flag));
	CHECK(flag && value == &size && !MPI_Comm_free(&one) && !MPI_Comm_free(&two) &&
		deleted == 2);
	CHECK(!MPI_Comm_free_keyval(&key) && key == MPI_KEYVAL_INVALID);
	CHECK(!MPI_Comm_create_keyval(
		MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL));
	CHECK(!MPI_Comm_dup(MPI_COMM_SELF, &one) && !MPI_Comm_set_attr(one, key, &size));
	CHECK(!MPI_Comm_dup(one, &two) && !MPI_Comm_get_attr(two, key, &value, &flag) && !flag);
	CHECK(!MPI_Comm_free(&one) && !MPI_Comm_free(&two) && !MPI_Comm_free_keyval(&key));
}

static void add_all(void *in, void *out, MPI_Count *count, MPI_Datatype *type)
{
	CHECK(*type == MPI_LONG);
	for (MPI_Count i = 0; i < *count; i++)
		((long *)out)[i] += ((long *)in)[i];
}

static void operations(void)
{
	long sum = rank + 1, largest[2] = {rank, rank};
	MPI_Op op;

	CHECK(!MPI_Op_create_c(add_all, 1, &op));
	CHECK(!MPI_Allreduce_c(MPI_IN_PLACE, &sum, 1, MPI_LONG, op, MPI_COMM_WORLD));
	CHECK(sum == size * (size + 1) / 2 && !MPI_Op_free(&op) && op == MPI_OP_NULL);
	CHECK(!MPI_Allreduce(MPI_IN_PLACE, largest, 2, MPI_LONG, MPI_MAX, MPI_COMM_WORLD));
	CHECK(largest[0] == size - 1);
}

static int session_told;

static void on_session_error(MPI_Session *session, int *code, ...)
{
	int class;

	CHECK(!MPI_Error_class(*code, &class) && class == MPI_ERR_ARG);
	session_told++;
}

static void sessions(void)
{
	MPI_Errhandler handler;
	MPI_Session session;
	MPI_Group group;
	int members = -1;

	CHECK(!MPI_Session_create_errhandler(on_session_error, &handler));
	CHECK(!MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
	CHECK(!MPI_Session_set_errhandler(session, handler) && !MPI_Errhandler_free(&handler));
	CHECK(!MPI_Session_call_errhandler(session, MPI_ERR_ARG) && session_told == 1);
	CHECK(!MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
	CHECK(!MPI_Group_size(group, &members) && members == size && !MPI_Group_free(&group));
	CHECK(!MPI_Session_finalize(&session) && session == MPI_SESSION_NULL);
}

/* ---- buffers ---- */

static void buffers(void)
{
	static char own[4096];
	void *given = NULL;
	int bytes = -1, in = -1, next = (rank + 1) % size;

	CHECK(!MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0));
	CHECK(!MPI_Bsend(&rank, 1, MPI_INT, next, 51, MPI_COMM_WORLD));
	CHECK(!MPI_Recv(
		      &in, 1, MPI_INT, MPI_ANY_SOURCE, 51, MPI_COMM_WORLD, MPI_STATUS_IGNORE) &&
		in == (rank + size - 1) % size);
	CHECK(!MPI_Buffer_detach(&given, &bytes) && given == MPI_BUFFER_AUTOMATIC);
	CHECK(!MPI_Comm_attach_buffer(MPI_COMM_WORLD, own, sizeof(own)));
	CHECK(!MPI_Comm_detach_buffer(MPI_COMM_WORLD, &given, &bytes) && given == own);
}

/* ---- windows ---- */

static void windows(void)
{
	int memory[2] = {-1, -1}, next = (rank + 1) % size, *model, *flavor, *other;
	int flag = 0, given = 50 + rank, *mine;
	MPI_Win window, allocated;

	CHECK(!MPI_Win_create(
		memory, sizeof(memory), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window));
	CHECK(!MPI_Win_allocate(4, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &allocated));
	CHECK(!MPI_Win_get_attr(window, MPI_WIN_MODEL, &model, &flag) && flag);
	CHECK(*model == MPI_WIN_UNIFIED || *model == MPI_WIN_SEPARATE);
	CHECK(!MPI_Win_get_attr(window, MPI_WIN_CREATE_FLAVOR, &flavor, &flag) && flag);
	CHECK(!MPI_Win_get_attr(allocated, MPI_WIN_CREATE_FLAVOR, &other, &flag) && flag);
	CHECK(*flavor == MPI_WIN_FLAVOR_CREATE && *other == MPI_WIN_FLAVOR_ALLOCATE);
	CHECK(!MPI_Win_fence(MPI_MODE_NOPRECEDE, window));
	CHECK(!MPI_Put(&given, 1, MPI_INT, next, 1, 1, MPI_INT, window));
	CHECK(!MPI_Win_fence(MPI_MODE_NOSUCCEED | MPI_MODE_NOSTORE, window));
	CHECK(memory[0] == -1 && memory[1] == 50 + (rank + size - 1) % size);
	CHECK(!MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, window));
	CHECK(!MPI_Win_unlock(next, window) && !MPI_Win_free(&allocated));
	CHECK(!MPI_Win_free(&window) && window == MPI_WIN_NULL);
}

/* ---- the interface for tools ---- */

static void tools(void)
{
	int level, count = 0, name_length, text_length, verbosity, bind, scope;
	char name[256], text[1024];
	MPI_Datatype type;
	MPI_T_enum values;

	CHECK(!MPI_T_init_thread(MPI_THREAD_SINGLE, &level) && level >= MPI_THREAD_SINGLE);
	CHECK(!MPI_T_cvar_get_num(&count) && count > 0);
	for (int i = 0; i < count; i++) {
		name_length = sizeof(name);
		text_length = sizeof(text);
		CHECK(!MPI_T_cvar_get_info(i, name, &name_length, &verbosity, &type, &values,
			text, &text_length, &bind, &scope));
		CHECK(verbosity >= MPI_T_VERBOSITY_USER_BASIC &&
			verbosity <= MPI_T_VERBOSITY_MPIDEV_ALL);
		CHECK(bind == MPI_T_BIND_NO_OBJECT && scope >= MPI_T_SCOPE_CONSTANT &&
			scope <= MPI_T_SCOPE_ALL_EQ);
		CHECK(type == MPI_INT || type == MPI_CHAR || type == MPI_UNSIGNED_LONG ||
			type == MPI_UNSIGNED || type == MPI_DOUBLE ||
			type == MPI_UNSIGNED_LONG_LONG);
	}
	CHECK(MPI_T_cvar_get_index("no such variable", &level) == MPI_T_ERR_INVALID_NAME);
	CHECK(!MPI_T_finalize());
}

int main(int argc, char **argv)
{
	int sum, level;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
	CHECK(level == MPI_THREAD_SERIALIZED);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	nobody();
	tags();
	errors();
	told();
	parts();
	large_parts();
	sizes();
	numbers();
	files();
	attributes();
	operations();
	sessions();
	buffers();
	windows();
	tools();
	sum = rank;
	CHECK(!MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
	CHECK(sum == size * (size - 1) / 2);
	printf("rank %d of %d: done\n", rank, size);
	MPI_Finalize();
	return 0;
}
