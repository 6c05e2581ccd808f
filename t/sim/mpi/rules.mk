# A simulated MPI library, and what runs on it (t/mpi_sim.t).
SIM_MPI := $(O)/t/sim/mpi/libmpi.so.12
SIM_MPI_OBJ := $(patsubst %.c,$(O)/%.o,$(wildcard t/sim/mpi/*.c))
$(SIM_MPI_OBJ): $(O)/t/sim/mpi/%.o: t/sim/mpi/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) -std=gnu11 $(WARN) -O1 -g -pthread -fPIC -MMD -MP -c -o $@ $<
$(SIM_MPI): $(SIM_MPI_OBJ)
	$(CC) -shared -Wl,-soname,$(@F) -Wl,-z,defs -o $@ $^ -pthread
$(O)/t/sim/mpi/random: t/application/mpi_random.c $(SIM_MPI)
	$(CC) $(CPPFLAGS) -It/sim/mpi -std=gnu11 $(WARN) -O1 -g $(TEST_DEPS) -o $@ $^ -Wl,-rpath,'$$ORIGIN'
-include $(SIM_MPI_OBJ:.o=.d)

check: $(O)/t/sim/mpi/random
