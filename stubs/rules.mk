# Stubs: libraries of the upper half that stand for those of the lower half, and the generator
# of what follows from the API tables.
GEN := $(O)/stubs/gen/gen
GEN_OBJ := $(patsubst %.c,$(O)/%.o,$(wildcard stubs/gen/*.c)) $(O)/lib/err.o $(O)/lib/util.o

$(GEN): $(GEN_OBJ)
	$(CC) $(ALL_CFLAGS) -o $@ $^

# One file per output and API; an unfinished one is never left behind.
$(O)/stubs/gen/%.entries.S: stubs/api/%.api $(GEN)
	$(GEN) entries $< >$@.tmp && mv $@.tmp $@
$(O)/stubs/gen/%.procs.c: stubs/api/%.api $(GEN)
	$(GEN) procs $< >$@.tmp && mv $@.tmp $@
$(O)/stubs/gen/%.printer.c: stubs/api/%.api $(GEN)
	$(GEN) printer $< >$@.tmp && mv $@.tmp $@
$(O)/stubs/gen/%.calls.h: stubs/api/%.api $(GEN)
	$(GEN) calls $< >$@.tmp && mv $@.tmp $@

check-api: $(GEN)
	@CC="$(CC)" stubs/gen/check-api $(GEN) stubs/api/cuda.api cuda.h cudaProfiler.h || [ $$? = 77 ]

.PHONY: check-api
