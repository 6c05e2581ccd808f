# The allocator of device memory: part of the stub and of trecr-lower, and tested by itself.
MMU_SRC := $(wildcard mmu/*.c)
MMU_OBJ := $(MMU_SRC:%.c=$(O)/%.o)

$(MMU_OBJ): ALL_CFLAGS = -std=gnu11 $(WARN) $(CFLAGS) -MMD -MP -fPIC -fvisibility=hidden \
	-fno-stack-protector

$(O)/t/unit/mmu: t/unit/mmu.c $(MMU_SRC)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(filter-out -MMD -MP,$(ALL_CFLAGS)) -o $@ $^
