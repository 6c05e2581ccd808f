# A build of several jobs and a recursive one, which share the job server.
objects = $(patsubst %.c,%.o,$(wildcard src/*.c))

all: program
	@test ! -e failed
	@./program; echo "status $$?" >built; $(MAKE) -s count >>built

program: $(objects)
	@gcc -o $@ $(sort $^)

%.o: %.c
	@[ $* != src/1 ] || echo ready
	@gcc -O2 -c -o $@ $<

count:
	@ls src/*.o | wc -l
.PHONY: all count
