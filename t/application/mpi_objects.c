/*
 * mpi_objects.c - an MPI program of one rank without a launcher that holds objects of each kind: datatypes
 * of all constructors, communicators with topologies, groups, operations, error handlers, attributes,
 * info. Each round uses all of them and checks what comes out, until SIGUSR1. Prints "ready" after the
 * first round, and "ok" at the end, when all have been freed and each attribute's function was called.
 *
 * Others are made first, and freed before the first round: so the library of a restart gives the
 * same objects other handles.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_one_rank.h"

/* ---- datatypes ---- */

#if MPI_VERSION >= 4
enum { SMALL = 17, TYPES = SMALL + 13 };
#else
enum { SMALL = 17, TYPES = SMALL };
#endif
static MPI_Datatype types[TYPES];
static int packed[TYPES], type_key, type_deleted;
static char memory[4096];

static int delete_of_type(MPI_Datatype type, int key, void *value, void *extra)
{
	CHECK(type == types[16] && key == type_key && value == memory &&
		extra == &type_deleted);
	type_deleted++;
	return MPI_SUCCESS;
}

#if MPI_VERSION >= 4
/* With large counts, which the library keeps in another way, and of such. */
static void make_large_types(void)
{
	MPI_Count lengths[3] = {2, 0, 1}, at[3] = {0, 5, 7}, sizes[2] = {6, 5},
		  parts[2] = {2, 3};
	MPI_Count starts[2] = {1, 2}, bytes[3] = {0, 24, 48};
	int how[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_NONE}, ranks[2] = {1, 1};
	int arguments[2] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG};
	MPI_Datatype *t = types + SMALL, mixed[3] = {MPI_INT, MPI_CHAR, types[1]};

	MPI_Type_contiguous_c(3, MPI_INT, t++);
	MPI_Type_vector_c(2, 1, 3, MPI_DOUBLE, t++);
	MPI_Type_create_hvector_c(2, 2, 40, MPI_SHORT, t++);
	MPI_Type_indexed_c(3, lengths, at, MPI_INT, t++);
	MPI_Type_create_hindexed_c(3, lengths, bytes, MPI_INT, t++);
	MPI_Type_create_indexed_block_c(3, 1, at, MPI_CHAR, t++);
	MPI_Type_create_hindexed_block_c(3, 2, bytes, MPI_FLOAT, t++);
	MPI_Type_create_struct_c(3, lengths, bytes, mixed, t++);
	MPI_Type_create_subarray_c(2, sizes, parts, starts, MPI_ORDER_FORTRAN, MPI_INT, t++);
	MPI_Type_create_darray_c(
		1, 0, 2, sizes, how, arguments, ranks, MPI_ORDER_C, MPI_INT, t++);
	MPI_Type_create_resized_c(types[SMALL], -4, 40, t++);
	MPI_Type_dup(types[SMALL + 1], t++);
	MPI_Type_contiguous(2, types[SMALL + 3], t++);
	CHECK(t == types + TYPES);
}
#endif

static void make_types(void)
{
	int lengths[3] = {2, 0, 1}, at[3] = {0, 5, 7}, sizes[2] = {6, 5}, parts[2] = {2, 3};
	int starts[2] = {1, 2}, how[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_NONE};
	int arguments[2] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG};
	int ranks[2] = {1, 1};
	MPI_Aint bytes[3] = {0, 24, 48};
	MPI_Datatype *t = types, mixed[3] = {MPI_INT, MPI_CHAR, MPI_DATATYPE_NULL}, inner;

	MPI_Type_contiguous(3, MPI_INT, t++);
	MPI_Type_vector(2, 1, 3, MPI_DOUBLE, t++);
	MPI_Type_create_hvector(2, 2, 40, MPI_SHORT, t++);
	MPI_Type_indexed(3, lengths, at, MPI_INT, t++);
	MPI_Type_create_hindexed(3, lengths, bytes, MPI_INT, t++);
	MPI_Type_create_indexed_block(3, 1, at, MPI_CHAR, t++);
	MPI_Type_create_hindexed_block(3, 2, bytes, MPI_FLOAT, t++);
	mixed[2] = types[1];
	MPI_Type_create_struct(3, lengths, bytes, mixed, t++);
	MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, t++);
	MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_FORTRAN, MPI_INT, t++);
	MPI_Type_create_darray(
		1, 0, 2, sizes, how, arguments, ranks, MPI_ORDER_C, MPI_INT, t++);
	MPI_Type_create_resized(types[0], -4, 40, t++);
	MPI_Type_dup(types[1], t++);
	MPI_Type_create_f90_real(10, MPI_UNDEFINED, t++);
	MPI_Type_create_f90_integer(5, t++);
	MPI_Type_create_f90_complex(6, 20, t++);
	/* Made of a datatype that is freed: only the library knows it. */
	MPI_Type_vector(2, 1, 2, MPI_INT, &inner);
	MPI_Type_contiguous(2, inner, t++);
	MPI_Type_free(&inner);
	CHECK(t == types + SMALL);
#if MPI_VERSION >= 4
	make_large_types();
#endif
	for (int i = 0; i < TYPES; i++)
		if (i < 13 || i > 15)
			CHECK(!MPI_Type_commit(&types[i]));
	MPI_Type_set_name(types[2], "two shorts");
	MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, delete_of_type, &type_key, &type_deleted);
	MPI_Type_set_attr(types[16], type_key, memory);
}

/* A number that says which bytes of memory a datatype has. */
static int sum_of(MPI_Datatype type)
{
	char out[1024];
	int size, at = 0, sum = 0;

	MPI_Pack(memory + 256, 1, type, out, sizeof(out), &at, MPI_COMM_SELF);
	MPI_Type_size(type, &size);
	CHECK(size == at);
	for (int i = 0; i < at; i++)
		sum = 31 * sum + out[i];
	return sum;
}

static void check_contents(void)
{
	int ints, addresses, parts, how, numbers[16];
	MPI_Aint places[16];
	MPI_Datatype of[3];

	MPI_Type_get_envelope(types[7], &ints, &addresses, &parts, &how);
	CHECK(how == MPI_COMBINER_STRUCT && parts == 3);
	MPI_Type_get_contents(types[7], 16, 16, 3, numbers, places, of);
	CHECK(of[0] == MPI_INT && of[1] == MPI_CHAR);
#ifndef OPEN_MPI /* which gives a copy */
	CHECK(of[2] == types[1]);
#endif
	MPI_Type_free(&of[2]);
	CHECK(of[2] == MPI_DATATYPE_NULL);
	MPI_Type_get_envelope(types[12], &ints, &addresses, &parts, &how);
	CHECK(how == MPI_COMBINER_DUP);
}

static void use_types(int round)
{
	MPI_Aint lower, extent;
	char name[MPI_MAX_OBJECT_NAME];
	int length, flag;
	void *value;
	MPI_Datatype again;

	for (int i = 0; i < TYPES; i++) {
		int sum = sum_of(types[i]);

		CHECK(round == 1 || sum == packed[i]);
		packed[i] = sum;
	}
	check_contents();
	MPI_Type_get_extent(types[11], &lower, &extent);
	CHECK(lower == -4 && extent == 40);
	MPI_Type_get_name(types[2], name, &length);
	CHECK(!strcmp(name, "two shorts"));
	MPI_Type_get_attr(types[16], type_key, &value, &flag);
	CHECK(flag && value == memory);
	MPI_Type_create_f90_real(10, MPI_UNDEFINED, &again);
	CHECK(again == types[13]);
}

static void free_types(void)
{
	for (int i = 0; i < TYPES; i++)
		if (i < 13 || i > 15)
			CHECK(!MPI_Type_free(&types[i]));
	CHECK(type_deleted == 1);
	MPI_Type_free_keyval(&type_key);
	CHECK(type_key == MPI_KEYVAL_INVALID);
}

/* ---- groups and communicators ---- */

static MPI_Group world_group;
static MPI_Comm copy, part, grid, row, graph, neighbours, weighted, of_group;
static int key, freed_key, kept = 7, copies, deleted, errors, last_code;
static int first_copies; /* Open MPI makes one more for a topology */
static MPI_Errhandler handler;
static int *tag_limit;

static int copy_attribute(MPI_Comm comm, int k, void *extra, void *value, void *out, int *flag)
{
	CHECK(k == key && extra == &kept);
	*(char **)out = (char *)value + 1;
	*flag = 1;
	copies++;
	return MPI_SUCCESS;
}

static int delete_attribute(MPI_Comm comm, int k, void *value, void *extra)
{
	CHECK(k == key && extra == &kept);
	deleted++;
	return MPI_SUCCESS;
}

static int delete_of_freed(MPI_Comm comm, int k, void *value, void *extra)
{
	CHECK(comm == part && value == &kept);
	deleted += 100;
	return MPI_SUCCESS;
}

static void on_error(MPI_Comm *comm, int *code, ...)
{
	CHECK(*comm == copy || *comm == part);
	errors++;
	last_code = *code;
}

static void make_graphs(void)
{
	int index[1] = {1}, to[1] = {0}, sources[2] = {0, 0}, weights[2] = {5, 6};

	MPI_Graph_create(MPI_COMM_WORLD, 1, index, to, 0, &graph);
	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, sources, MPI_UNWEIGHTED, 1, sources,
		MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &neighbours);
	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, sources, weights, 1, sources,
		weights + 1, MPI_INFO_NULL, 0, &weighted);
}

static void make_comms(void)
{
	int sizes[3] = {1, 1, 1}, periods[3] = {0, 1, 0}, keep[3] = {0, 1, 1}, flag;
	MPI_Info hint;

	MPI_Comm_create_keyval(copy_attribute, delete_attribute, &key, &kept);
	MPI_Comm_set_attr(MPI_COMM_WORLD, key, memory);
	MPI_Comm_dup(MPI_COMM_WORLD, &copy);
	MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &part);
	MPI_Cart_create(MPI_COMM_WORLD, 3, sizes, periods, 1, &grid);
	MPI_Cart_sub(grid, keep, &row);
	make_graphs();
	MPI_Comm_group(MPI_COMM_WORLD, &world_group);
	MPI_Comm_create_group(MPI_COMM_WORLD, world_group, 3, &of_group);
	MPI_Comm_set_name(copy, "a copy");
	MPI_Info_create(&hint);
	MPI_Info_set(hint, "mpi_assert_no_any_tag", "true");
	MPI_Comm_set_info(copy, hint);
	MPI_Info_free(&hint);
	MPI_Comm_create_errhandler(on_error, &handler);
	MPI_Comm_set_errhandler(copy, handler);
	MPI_Comm_set_errhandler(part, handler);
	MPI_Errhandler_free(&handler);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_of_freed, &freed_key, &kept);
	MPI_Comm_set_attr(part, freed_key, &kept);
	MPI_Comm_free_keyval(&freed_key);
	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &tag_limit, &flag);
	CHECK(flag && *tag_limit >= 32767);
	first_copies = copies;
}

static void use_settings(void)
{
	char name[MPI_MAX_OBJECT_NAME];
	int length, flag, before = errors;
	MPI_Errhandler set;
	MPI_Info hints;
	void *value;

	MPI_Comm_get_attr(copy, key, &value, &flag);
	CHECK(flag && value == memory + 1);
	MPI_Comm_get_attr(MPI_COMM_WORLD, key, &value, &flag);
	CHECK(flag && value == memory);
	MPI_Comm_get_attr(grid, key, &value, &flag);
	CHECK(!flag);
	CHECK(*tag_limit >= 32767);
	MPI_Comm_get_name(copy, name, &length);
	CHECK(!strcmp(name, "a copy"));
	MPI_Comm_get_info(copy, &hints);
	MPI_Info_get(hints, "mpi_assert_no_any_tag", MPI_MAX_OBJECT_NAME - 1, name, &flag);
#ifdef OPEN_MPI /* keeps no hint that it does not know */
	CHECK(!flag);
#else
	CHECK(flag && !strcmp(name, "true"));
#endif
	MPI_Info_free(&hints);
	MPI_Comm_get_name(MPI_COMM_WORLD, name, &length);
	CHECK(!strcmp(name, "MPI_COMM_WORLD"));
	MPI_Bcast(NULL, 0, MPI_INT, 77, copy);
	MPI_Comm_call_errhandler(part, MPI_ERR_OTHER);
	CHECK(errors == before + 2 && last_code == MPI_ERR_OTHER);
	MPI_Comm_get_errhandler(MPI_COMM_SELF, &set);
	CHECK(set == MPI_ERRORS_RETURN);
	MPI_Comm_get_errhandler(MPI_COMM_WORLD, &set);
	CHECK(set == MPI_ERRORS_ARE_FATAL);
}

static void use_graphs(void)
{
	int nodes, edges, in, out, is_weighted, sources[2], in_weights[2], to[1],
		out_weights[1];

	MPI_Graphdims_get(graph, &nodes, &edges);
	CHECK(nodes == 1 && edges == 1);
	MPI_Dist_graph_neighbors_count(neighbours, &in, &out, &is_weighted);
	CHECK(in == 2 && out == 1 && !is_weighted);
	MPI_Dist_graph_neighbors_count(weighted, &in, &out, &is_weighted);
	CHECK(in == 2 && out == 1 && is_weighted);
	MPI_Dist_graph_neighbors(weighted, 2, sources, in_weights, 1, to, out_weights);
	CHECK(in_weights[0] == 5 && in_weights[1] == 6 && out_weights[0] == 6 && !to[0]);
}

static void use_comms(int round)
{
	MPI_Comm all[] = {copy, part, grid, row, graph, neighbours, weighted, of_group}, again;
	int size, same, place[3], sizes[3], periods[3], up, down;
	MPI_Group group;

	for (unsigned i = 0; i < sizeof(all) / sizeof(*all); i++) {
		int in = round + i, out = -1;

		CHECK(!MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, all[i]) && in == out);
		MPI_Comm_compare(all[i], MPI_COMM_WORLD, &same);
		CHECK(same == MPI_CONGRUENT);
	}
	MPI_Cart_get(grid, 3, sizes, periods, place);
	CHECK(sizes[2] == 1 && !periods[0] && periods[1] && !place[0]);
	MPI_Cart_shift(row, 0, 1, &up, &down);
	CHECK(up == 0 && down == 0);
	MPI_Cart_shift(row, 1, 1, &up, &down);
	CHECK(up == MPI_PROC_NULL && down == MPI_PROC_NULL);
	MPI_Group_size(world_group, &size);
	CHECK(size == 1);
	MPI_Comm_group(copy, &group);
	MPI_Group_compare(group, world_group, &same);
	CHECK(same == MPI_IDENT);
	MPI_Group_free(&group);
	use_settings();
	use_graphs();
	size = copies;
	MPI_Comm_dup(copy, &again);
	MPI_Comm_free(&again);
	CHECK(again == MPI_COMM_NULL && deleted == round && copies == size + 1);
}

static void free_comms(int rounds)
{
	MPI_Comm *all[] = {&copy, &grid, &row, &graph, &neighbours, &weighted, &of_group};

	for (unsigned i = 0; i < sizeof(all) / sizeof(*all); i++)
		CHECK(!MPI_Comm_free(all[i]) && *all[i] == MPI_COMM_NULL);
	CHECK(deleted == rounds + first_copies);
	MPI_Comm_delete_attr(MPI_COMM_WORLD, key);
	CHECK(deleted == rounds + first_copies + 1);
	MPI_Comm_free_keyval(&key);
	CHECK(!MPI_Comm_free(&part) && deleted == rounds + first_copies + 101);
	MPI_Group_free(&world_group);
}

/* ---- operations and info ---- */

static MPI_Op op, ordered;
static MPI_Info info;

static void twice(void *in, void *out, int *count, MPI_Datatype *type)
{
	CHECK(*type == MPI_INT || *type == types[0]);
	for (int i = 0; i < *count * (*type == MPI_INT ? 1 : 3); i++)
		((int *)out)[i] += 2 * ((int *)in)[i];
}

static void make_rest(void)
{
	MPI_Op_create(twice, 1, &op);
	MPI_Op_create(twice, 0, &ordered);
	MPI_Info_create(&info);
	MPI_Info_set(info, "a key", "its value");
#ifdef OPEN_MPI
	MPI_Info_set(info, "another", "nothing"); /* it takes no value that is empty */
#else
	MPI_Info_set(info, "another", "");
#endif
	MPI_Info_delete(info, "another");
	MPI_Info_set(info, "the last", "one");
}

static void use_rest(int round)
{
	int in[3] = {round, 1, 2}, out[3] = {5, 5, 5}, flag, commutes, keys;
	char text[64];

	MPI_Reduce_local(in, out, 1, MPI_INT, op);
	CHECK(out[0] == 5 + 2 * round);
	MPI_Reduce_local(in, out, 1, types[0], ordered);
	CHECK(out[0] == 5 + 4 * round && out[2] == 9);
	MPI_Op_commutative(op, &commutes);
	CHECK(commutes);
	MPI_Op_commutative(ordered, &commutes);
	CHECK(!commutes);
	MPI_Info_get_nkeys(info, &keys);
	MPI_Info_get(info, "a key", 63, text, &flag);
	CHECK(keys == 2 && flag && !strcmp(text, "its value"));
	MPI_Info_get_nthkey(info, 1, text);
	CHECK(!strcmp(text, "the last"));
}

static void free_rest(void)
{
	CHECK(!MPI_Op_free(&op) && op == MPI_OP_NULL && !MPI_Op_free(&ordered));
	CHECK(!MPI_Info_free(&info) && info == MPI_INFO_NULL);
}

/* ---- */

enum { OTHERS = 7 };
static MPI_Datatype other_types[OTHERS];
static MPI_Comm other_comms[OTHERS];
static MPI_Op other_ops[OTHERS];
static MPI_Info other_infos[OTHERS];
static int other_keys[OTHERS];

static void make_others(void)
{
	for (int i = 0; i < OTHERS; i++) {
		MPI_Type_contiguous(i + 1, MPI_CHAR, &other_types[i]);
		MPI_Comm_dup(MPI_COMM_SELF, &other_comms[i]);
		MPI_Op_create(twice, 1, &other_ops[i]);
		MPI_Info_create(&other_infos[i]);
		MPI_Comm_create_keyval(
			MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &other_keys[i], NULL);
	}
}

static void free_others(void)
{
	for (int i = 0; i < OTHERS; i++) {
		MPI_Type_free(&other_types[i]);
		MPI_Comm_free(&other_comms[i]);
		MPI_Op_free(&other_ops[i]);
		MPI_Info_free(&other_infos[i]);
		MPI_Comm_free_keyval(&other_keys[i]);
	}
}

static void say(const char *what)
{
	printf("%s\n", what);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	int round = 0;

	signal(SIGUSR1, on_end_signal);
	for (unsigned i = 0; i < sizeof(memory); i++)
		memory[i] = 7 * i + i / 256;
	MPI_Init(&argc, &argv);
	make_others();
	make_types();
	make_comms();
	make_rest();
	free_others();
	while (!told_to_end || !round) {
		round++;
		use_types(round);
		use_comms(round);
		use_rest(round);
		if (round == 1)
			say("ready");
	}
	free_types();
	free_comms(round);
	free_rest();
	MPI_Finalize();
	say("ok");
	return 0;
}
