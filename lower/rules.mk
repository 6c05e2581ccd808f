# trecr-lower: the program of the lower half. Not sanitized: it lives beside the program's own
# sanitizer, if any.
LOWER_EXPORTS := mmap mmap64 malloc free calloc realloc malloc_usable_size exit
LOWER := $(O)/lower/trecr-lower
LOWER_OBJ := $(patsubst %.c,$(O)/%.o,$(wildcard lower/*.c lower/cuda/*.c lower/mpi/*.c lower/mpi/openmpi/*.c)) \
	$(O)/lower/mpi/openmpi/library_thunks.o \
	$(patsubst %,$(O)/lower/shared/%.o,calls memory_driver cuda.info)

# No calls of calloc out of malloc and memset: it is calloc that is being written.
$(O)/lower/heap.o: CFLAGS += -fno-builtin-malloc
$(LOWER_OBJ): private ALL_CFLAGS = -std=gnu11 $(WARN) $(CFLAGS) -MMD -MP -pthread -fPIE \
	-fno-stack-protector -mfsgsbase -I$(O)/stubs/gen
$(LOWER_OBJ): $(O)/stubs/gen/cuda.index.h
$(O)/lower/mpi/openmpi/library_adapters.o $(O)/lower/mpi/openmpi/handles.o $(O)/lower/mpi/openmpi/added_errors.o: $(O)/stubs/gen/mpi.openmpi.inc $(O)/stubs/gen/mpi.openmpi.h \
	$(O)/stubs/gen/mpi.narrowed.inc
$(O)/lower/mpi/openmpi/%.o: lower/mpi/openmpi/%.S shared/mpi/thunks.inc
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -c -o $@ $<
$(O)/lower/cuda/hash_module.o: lower/cuda/hash_kernel.ptx lower/cuda/hash_kernel.sm_90.cubin # are inside
$(O)/lower/shared/%.o: shared/cuda/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -c -o $@ $<
$(O)/lower/shared/cuda.info.o: $(O)/stubs/gen/cuda.info.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -c -o $@ $<
$(LOWER): $(LOWER_OBJ) $(DEVMEM_OBJ)
	$(CC) $(LDFLAGS) -pie -pthread -o $@ $^ $(LOWER_EXPORTS:%=-Wl,--export-dynamic-symbol=%) $(UNPACKERS) -ldl
