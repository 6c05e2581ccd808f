# The code behind the patched system calls of the lower half: a program without libc at a fixed
# address (shared/address_windows.h), about 30 KB of text and data, and 1 MiB of tables.
LOWER_CORE := $(O)/bringup/trecr-lower-core
LOWER_CORE_OBJ := $(patsubst %,$(O)/bringup/%.o,core core_entry hook insn site space)

$(O)/bringup/%.o: bringup/%.c
	@mkdir -p $(@D)
	$(CC) -I. $(LOADER_CFLAGS) -c -o $@ $<
$(O)/bringup/%.o: bringup/%.S
	@mkdir -p $(@D)
	$(CC) -I. $(LOADER_CFLAGS) -c -o $@ $<
$(LOWER_CORE_OBJ): LOADER_CFLAGS += -D_GNU_SOURCE
$(O)/bringup/core_entry.o: bringup/site_entry.inc

# At LOWER_CORE (shared/address_windows.h).
$(LOWER_CORE): $(LOWER_CORE_OBJ)
	$(CC) -nostdlib -static -no-pie -Wl,-Ttext-segment=0x480000000000 -Wl,--build-id=none \
		-Wl,-z,noexecstack -Wl,--no-relax -o $@ $^ -lgcc
