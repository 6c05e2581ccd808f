# Stubs: libraries of the upper half that stand for libraries of the lower half, and the generator
# of what follows from the API tables.
GEN := $(O)/stubs/gen/gen
GEN_OBJ := $(patsubst %.c,$(O)/%.o,$(wildcard stubs/gen/*.c)) \
	$(patsubst %,$(O)/lib/%.o,err limits util)

# It ends with all that it has in its hands.
RUN_GEN := ASAN_OPTIONS=detect_leaks=0 $(GEN)

$(GEN): $(GEN_OBJ)
	$(CC) $(ALL_CFLAGS) -o $@ $^

# One file per output and API; an unfinished one is never left behind.
$(O)/stubs/gen/%.entries.S: stubs/api/%.api $(GEN)
	$(RUN_GEN) entries $< >$@.tmp && mv $@.tmp $@
$(O)/stubs/gen/%.versions.c: stubs/api/%.api $(GEN)
	$(RUN_GEN) versions $< >$@.tmp && mv $@.tmp $@
$(O)/stubs/gen/%.info.c: stubs/api/%.api $(GEN)
	$(RUN_GEN) info $< >$@.tmp && mv $@.tmp $@
$(O)/stubs/gen/%.index.h: stubs/api/%.api $(GEN)
	$(RUN_GEN) index $< >$@.tmp && mv $@.tmp $@
$(O)/stubs/gen/%.calls.h: stubs/api/%.api $(GEN)
	$(RUN_GEN) calls $< >$@.tmp && mv $@.tmp $@
# Another ABI of the same functions.
$(O)/stubs/gen/mpi.openmpi.inc: stubs/api/mpi.api stubs/api/openmpi.abi $(GEN)
	$(RUN_GEN) adapter stubs/api/mpi.api stubs/api/openmpi.abi >$@.tmp && mv $@.tmp $@
$(O)/stubs/gen/mpi.narrowed.inc: stubs/api/mpi.api stubs/api/openmpi.abi $(GEN)
	$(RUN_GEN) narrowed stubs/api/mpi.api stubs/api/openmpi.abi >$@.tmp && mv $@.tmp $@
$(O)/stubs/gen/mpi.fortran.inc: stubs/api/mpi.api stubs/api/openmpi.abi $(GEN)
	$(RUN_GEN) fortran stubs/api/mpi.api stubs/api/openmpi.abi >$@.tmp && mv $@.tmp $@
$(O)/stubs/gen/mpi.openmpi.h: stubs/api/mpi.api stubs/api/openmpi.abi $(GEN)
	$(RUN_GEN) constants stubs/api/mpi.api stubs/api/openmpi.abi >$@.tmp && mv $@.tmp $@
$(O)/stubs/gen/mpi.standard.inc: stubs/api/mpi.api stubs/api/standard.abi $(GEN)
	$(RUN_GEN) adapter stubs/api/mpi.api stubs/api/standard.abi >$@.tmp && mv $@.tmp $@
$(O)/stubs/gen/mpi.standard.h: stubs/api/mpi.api stubs/api/standard.abi $(GEN)
	$(RUN_GEN) constants stubs/api/mpi.api stubs/api/standard.abi >$@.tmp && mv $@.tmp $@

check-api: $(GEN)
	@CC="$(CC)" stubs/gen/check-api $(GEN) stubs/api/cuda.api 'CUresult +cu[A-Z]' \
		"-D__CUDA_API_VERSION_INTERNAL -I$${CUDA_HOME:-/usr/local/cuda}/include" \
		cuda.h cudaProfiler.h || [ $$? = 77 ]
	@CC="$(CC)" stubs/gen/check-api $(GEN) stubs/api/mpi.api '[A-Za-z_]+ +MPIX?_[A-Z]' \
		"-DMPI_Keyval=int $$(mpicc.mpich -show 2>/dev/null | grep -o -- '-I[^ ]*')" mpi.h || [ $$? = 77 ]
	@CC="$(CC)" stubs/gen/check-abi $(GEN) stubs/api/mpi.api stubs/api/openmpi.abi check-theirs \
		"$$(mpicc.mpich -show 2>/dev/null | grep -o -- '-I[^ ]*')" || [ $$? = 77 ]
	@CC="$(CC)" stubs/gen/check-abi $(GEN) stubs/api/mpi.api stubs/api/openmpi.abi check-own \
		"$$(mpicc.openmpi --showme:compile 2>/dev/null)" || [ $$? = 77 ]
	@[ -z "$${MPICH5:-}" ] || CC="$(CC)" stubs/gen/check-abi $(GEN) stubs/api/mpi.api stubs/api/standard.abi check-theirs \
		"-I$$MPICH5/include"
	@[ -z "$${MPICH5:-}" ] || CC="$(CC)" stubs/gen/check-abi $(GEN) stubs/api/mpi.api stubs/api/standard.abi check-own \
		"-I$$MPICH5/include -include mpi_abi.h -DMPI_INCLUDED"

.PHONY: check-api

# What a program and its lower half need at run time, laid out as it is installed: stubs are in
# a folder of their own, which programs find first.
SPLIT_DIR := $(O)/lib/trecr
STUB_FLAGS = -std=gnu11 $(WARN) $(CFLAGS) -MMD -MP -fPIC -fno-stack-protector -mfsgsbase \
	-I$(O)/stubs/gen
CROSSING_OBJ := $(patsubst %,$(O)/%.o,$(basename $(wildcard stubs/crossing/*.c \
	stubs/crossing/*.S))) $(patsubst %,$(O)/stubs/bringup/%.o,clone elf_map insn site start)
CUDA_OBJ := $(patsubst %,$(O)/%.o,$(basename $(wildcard stubs/cuda/*.c stubs/cuda/*.S))) \
	$(O)/stubs/function_versions.o $(O)/stubs/shared/calls.o $(O)/stubs/shared/memory_driver.o \
	$(O)/stubs/gen/cuda.entries.o $(O)/stubs/gen/cuda.versions.o $(O)/stubs/gen/cuda.info.o \
	$(DEVMEM_OBJ)

NVML_OBJ := $(O)/stubs/nvml/libnvidia_ml.o $(O)/stubs/gen/nvml.entries.o
MPI_OBJ := $(patsubst %,$(O)/%.o,$(basename $(wildcard stubs/mpi/*.c stubs/mpi/*.S))) \
	$(O)/stubs/gen/mpi.entries.o $(O)/stubs/gen/mpi.info.o
# The same behind functions of Open MPI's ABI.
OPENMPI_OBJ := $(patsubst %,$(O)/%.o,$(basename $(wildcard stubs/mpi/openmpi/*.c stubs/mpi/openmpi/*.S)))
# And behind functions of the standard ABI.
STANDARD_OBJ := $(patsubst %,$(O)/%.o,$(basename $(wildcard stubs/mpi/standard/*.c stubs/mpi/standard/*.S)))
# Open MPI's functions for Fortran, over those for C.
FORTRAN_OBJ := $(patsubst %,$(O)/%.o,$(basename $(wildcard stubs/mpi/fortran/*.c stubs/mpi/fortran/*.S)))

# Theirs alone: not of what they need, as the generator, which is made for this machine.
$(CROSSING_OBJ) $(filter-out $(DEVMEM_OBJ),$(CUDA_OBJ)) $(NVML_OBJ) $(MPI_OBJ) $(OPENMPI_OBJ) $(STANDARD_OBJ) $(FORTRAN_OBJ): private ALL_CFLAGS = $(STUB_FLAGS)
$(O)/stubs/crossing/signals.o: private ALL_CFLAGS = $(STUB_FLAGS) -mgeneral-regs-only
$(CUDA_OBJ): $(O)/stubs/gen/cuda.calls.h $(O)/stubs/gen/cuda.index.h
$(O)/stubs/nvml/libnvidia_ml.o: $(O)/stubs/gen/nvml.index.h
$(MPI_OBJ): $(O)/stubs/gen/mpi.index.h
$(OPENMPI_OBJ): $(O)/stubs/gen/mpi.openmpi.inc $(O)/stubs/gen/mpi.openmpi.h
$(STANDARD_OBJ): $(O)/stubs/gen/mpi.standard.inc $(O)/stubs/gen/mpi.standard.h
$(O)/stubs/mpi/fortran/fortran_generated.o: $(O)/stubs/gen/mpi.fortran.inc
$(O)/stubs/mpi/fortran/fortran_thunks.o $(O)/stubs/mpi/mpi_record_entry.o $(O)/stubs/mpi/openmpi/program_thunks.o $(O)/stubs/mpi/standard/standard_thunks.o: shared/mpi/thunks.inc

$(O)/stubs/%.o: stubs/%.S
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -c -o $@ $<
# clang's own assembler wants one section's CFI to end before another's begins.
GNU_AS = $(if $(findstring clang,$(CC)),-fno-integrated-as)
GEN_ENTRIES_INCLUDED := stubs/entry_macros.inc stubs/cuda/cuda_entry_macros.inc stubs/cuda/query_cache.inc \
	stubs/mpi/mpi_entry_macros.inc shared/mpi/mpi_state.h shared/mpi/file_records.h \
	stubs/cuda/query_cache.h shared/cuda/offsets.h stubs/crossing/thread.h shared/address_windows.h
$(O)/stubs/gen/%.o: $(O)/stubs/gen/%.S $(GEN_ENTRIES_INCLUDED)
	$(CC) $(CPPFLAGS) $(GNU_AS) -c -o $@ $<
$(O)/stubs/gen/%.versions.o: $(O)/stubs/gen/%.versions.c
	$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -fvisibility=hidden -c -o $@ $<
$(O)/stubs/gen/%.info.o: $(O)/stubs/gen/%.info.c shared/call_info.h shared/cuda/cuda_state.h shared/mpi/mpi_state.h
	$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -fvisibility=hidden -c -o $@ $<
$(O)/stubs/shared/%.o: shared/cuda/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -c -o $@ $<
# What the crossing brings the lower half up with.
$(O)/stubs/bringup/%.o: bringup/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -fvisibility=hidden -c -o $@ $<
$(O)/stubs/bringup/%.o: bringup/%.S
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -c -o $@ $<

# What a program closes stays: the lower half calls it, and a restart begins in it.
STUB_LDFLAGS = $(LDFLAGS) -shared -Wl,-z,nodelete -Wl,-z,defs -Wl,-z,now -Wl,-z,noexecstack
$(SPLIT_DIR)/libtrecr-crossing.so: $(CROSSING_OBJ)
	@mkdir -p $(@D)
	$(CC) $(STUB_LDFLAGS) -Wl,-soname,$(@F) -o $@ $^ -pthread -ldl
$(SPLIT_DIR)/stubs/libcuda.so.1: $(CUDA_OBJ) $(SPLIT_DIR)/libtrecr-crossing.so
	@mkdir -p $(@D)
	$(CC) $(STUB_LDFLAGS) -Wl,-soname,$(@F) -Wl,-rpath,'$$ORIGIN/..' -o $@ $^
$(SPLIT_DIR)/stubs/libnvidia-ml.so.1: $(NVML_OBJ) $(SPLIT_DIR)/libtrecr-crossing.so
	@mkdir -p $(@D)
	$(CC) $(STUB_LDFLAGS) -Wl,-soname,$(@F) -Wl,-rpath,'$$ORIGIN/..' -o $@ $^

$(SPLIT_DIR)/stubs/libmpich.so.12: $(MPI_OBJ) $(SPLIT_DIR)/libtrecr-crossing.so
	@mkdir -p $(@D)
	$(CC) $(STUB_LDFLAGS) -Wl,-soname,$(@F) -Wl,-rpath,'$$ORIGIN/..' -o $@ $^
# What programs call of MPICH's ABI they do not call here.
$(O)/stubs/gen/mpi.entries.hidden.o: $(O)/stubs/gen/mpi.entries.S $(GEN_ENTRIES_INCLUDED)
	$(CC) $(CPPFLAGS) $(GNU_AS) -DMPICH_HIDDEN -c -o $@ $<
$(SPLIT_DIR)/stubs/libmpi.so.40: $(OPENMPI_OBJ) $(filter-out %.entries.o,$(MPI_OBJ)) $(O)/stubs/gen/mpi.entries.hidden.o \
		stubs/mpi/openmpi/exports.map $(SPLIT_DIR)/libtrecr-crossing.so
	@mkdir -p $(@D)
	$(CC) $(STUB_LDFLAGS) -Wl,-soname,$(@F) -Wl,-rpath,'$$ORIGIN/..' -Wl,--version-script=stubs/mpi/openmpi/exports.map \
		-o $@ $(filter-out %.map,$^)
$(SPLIT_DIR)/stubs/libmpi_abi.so.1: $(STANDARD_OBJ) $(filter-out %.entries.o,$(MPI_OBJ)) $(O)/stubs/gen/mpi.entries.hidden.o \
		stubs/mpi/standard/exports.map $(SPLIT_DIR)/libtrecr-crossing.so
	@mkdir -p $(@D)
	$(CC) $(STUB_LDFLAGS) -Wl,-soname,$(@F) -Wl,-rpath,'$$ORIGIN/..' -Wl,--version-script=stubs/mpi/standard/exports.map \
		-o $@ $(filter-out %.map,$^)
# ld.so takes it for the real one, whose neighbour libmpi.so.40 is.
$(SPLIT_DIR)/stubs/libmpi_mpifh.so.40: $(FORTRAN_OBJ) $(SPLIT_DIR)/stubs/libmpi.so.40
	@mkdir -p $(@D)
	$(CC) $(STUB_LDFLAGS) -Wl,-soname,$(@F) -Wl,-rpath,'$$ORIGIN' -Wl,-rpath-link,$(SPLIT_DIR) -o $@ $^

# The same with entry points that note their first call (trecr-run --coverage).
$(O)/stubs/gen/%.entries.coverage.o: $(O)/stubs/gen/%.entries.S
	$(CC) -DCOVERAGE -I. $(GNU_AS) -c -o $@ $<
$(O)/stubs/gen/%.coverage.o: stubs/coverage.c $(O)/stubs/gen/%.calls.h
	$(CC) $(CPPFLAGS) $(STUB_FLAGS) -DCOVERAGE_CALLS='"$*.calls.h"' -c -o $@ $<
counted = $(filter-out %.entries.o,$(1)) $(O)/stubs/gen/$(2).entries.coverage.o \
	$(O)/stubs/gen/$(2).coverage.o
$(SPLIT_DIR)/coverage/libcuda.so.1: $(call counted,$(CUDA_OBJ),cuda) $(SPLIT_DIR)/libtrecr-crossing.so
	@mkdir -p $(@D)
	$(CC) $(STUB_LDFLAGS) -Wl,-soname,$(@F) -Wl,-rpath,'$$ORIGIN/..' -o $@ $^
$(SPLIT_DIR)/coverage/libnvidia-ml.so.1: $(call counted,$(NVML_OBJ),nvml) $(SPLIT_DIR)/libtrecr-crossing.so
	@mkdir -p $(@D)
	$(CC) $(STUB_LDFLAGS) -Wl,-soname,$(@F) -Wl,-rpath,'$$ORIGIN/..' -o $@ $^

$(SPLIT_DIR)/trecr-lower: $(LOWER)
	@mkdir -p $(@D)
	cp $< $@
$(SPLIT_DIR)/trecr-lower-core: $(LOWER_CORE)
	@mkdir -p $(@D)
	cp $< $@

# No libc: it is loaded into a space of its own in every program.
$(SPLIT_DIR)/libtrecr-audit.so: $(O)/stubs/audit/audit.o $(O)/stubs/audit/object_symbols.o
	@mkdir -p $(@D)
	$(CC) $(STUB_LDFLAGS) -nostdlib -Wl,-soname,$(@F) -o $@ $^
$(SPLIT_DIR)/libtrecr-audit-coverage.so: $(O)/stubs/audit/coverage.o $(O)/stubs/audit/object_symbols.o
	@mkdir -p $(@D)
	$(CC) $(STUB_LDFLAGS) -nostdlib -Wl,-soname,$(@F) -o $@ $^
$(O)/stubs/audit/coverage.o: stubs/audit/audit.c stubs/audit/object_symbols.h
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(STUB_FLAGS) -fvisibility=hidden -ffreestanding -DSTUBS='"/coverage"' \
		-c -o $@ $<
$(O)/stubs/audit/audit.o $(O)/stubs/audit/object_symbols.o: private ALL_CFLAGS = $(STUB_FLAGS) -fvisibility=hidden -ffreestanding

# For debuggers.
$(SPLIT_DIR)/trecr-gdb.py: tools/trecr-gdb.py
	@mkdir -p $(@D)
	cp $< $@

SPLIT := $(SPLIT_DIR)/trecr-gdb.py $(SPLIT_DIR)/libtrecr-audit.so $(SPLIT_DIR)/libtrecr-crossing.so $(SPLIT_DIR)/stubs/libcuda.so.1 $(SPLIT_DIR)/stubs/libnvidia-ml.so.1 $(SPLIT_DIR)/stubs/libmpich.so.12 $(SPLIT_DIR)/stubs/libmpi.so.40 $(SPLIT_DIR)/stubs/libmpi_abi.so.1 \
	$(SPLIT_DIR)/stubs/libmpi_mpifh.so.40 $(SPLIT_DIR)/trecr-lower $(SPLIT_DIR)/trecr-lower-core $(SPLIT_DIR)/libtrecr-audit-coverage.so \
	$(SPLIT_DIR)/coverage/libcuda.so.1 $(SPLIT_DIR)/coverage/libnvidia-ml.so.1
all: $(SPLIT)
