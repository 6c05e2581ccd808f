# The code behind the patched system calls of the lower half: a program without libc at a fixed
# address (loader/windows.h), about 30 KB of text and data, and 1 MiB of tables.
LOWER_CORE := $(O)/loader/lower/trecr-lower-core
LOWER_CORE_OBJ := $(patsubst %,$(O)/loader/lower/%.o,core core_entry hook insn site space)

$(LOWER_CORE_OBJ): LOADER_CFLAGS += -D_GNU_SOURCE
$(O)/loader/lower/core_entry.o: loader/lower/site_entry.inc

$(LOWER_CORE): $(LOWER_CORE_OBJ)
	$(CC) -nostdlib -static -no-pie -Wl,-Ttext-segment=0x480000000000 -Wl,--build-id=none \
		-Wl,-z,noexecstack -Wl,--no-relax -o $@ $^ -lgcc
