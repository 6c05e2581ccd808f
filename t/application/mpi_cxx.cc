/*
 * mpi_cxx.cc - a program in C++, which mpicxx links with Open MPI's library for C++: it sums by an operation of its own, and
 * catches an exception on the way. With BY_BINDINGS it uses that library (MPI::COMM_WORLD). With AS_LIBRARY it is a library
 * that programs in C are linked with. The program has the sum made by the library that it is given, if any.
 */
#include <cstdio>
#include <dlfcn.h>
#include <mpi.h>
#include <stdexcept>
#include <vector>

static void add(const int *in, int *out, int count)
{
	for (int i = 0; i < count; i++)
		out[i] += in[i];
}

#ifdef BY_BINDINGS
static void add_by_bindings(const void *in, void *out, int count, const MPI::Datatype &)
{
	add(static_cast<const int *>(in), static_cast<int *>(out), count);
}

static int rank_of_this()
{
	return MPI::COMM_WORLD.Get_rank();
}

static void sum(const std::vector<int> &own, std::vector<int> &all)
{
	MPI::Op op;

	op.Init(add_by_bindings, true);
	MPI::COMM_WORLD.Allreduce(own.data(), all.data(), (int)own.size(), MPI::INT, op);
	op.Free();
}
#else
static void add_in_c(void *in, void *out, int *count, MPI_Datatype *)
{
	add(static_cast<int *>(in), static_cast<int *>(out), *count);
}

static int rank_of_this()
{
	int rank;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	return rank;
}

static void sum(const std::vector<int> &own, std::vector<int> &all)
{
	MPI_Op op;

	MPI_Op_create(add_in_c, 1, &op);
	MPI_Allreduce(own.data(), all.data(), (int)own.size(), MPI_INT, op, MPI_COMM_WORLD);
	MPI_Op_free(&op);
}
#endif

/* Of what all ranks are, each of which has added 1. */
extern "C" int cxx_sum_of_ranks()
{
	std::vector<int> own(10), all(10);

	try {
		own.at(10) = 0;
	} catch (const std::out_of_range &) {
		own.assign(10, rank_of_this() + 1);
	}
	sum(own, all);
	return all[9];
}

#ifndef AS_LIBRARY
int main(int argc, char **argv)
{
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : nullptr;
	int (*function)() = cxx_sum_of_ranks;

	if (library)
		function = reinterpret_cast<int (*)()>(dlsym(library, "cxx_sum_of_ranks"));
	MPI_Init(&argc, &argv);
	int result = function();
	std::printf("done: %d\n", result);
	MPI_Finalize();
	return 0;
}
#endif
