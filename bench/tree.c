/*
 * tree REPORT PROCESSES KIB - a process with children, as many as PROCESSES in all, that pass a byte around through
 * pipes: a tick is once around, so that it takes all of them. Each has KIB of random memory of its own, and what
 * fork gave it. Runs until it is killed.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <unistd.h>

#include "bench/program.h"
#include "bench/report.h"

static void fill(size_t kib)
{
	char *memory = mmap(
		NULL, kib * 1024, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	must(memory != MAP_FAILED, "mmap");
	for (size_t i = 0; i < kib; i++)
		must(getrandom(memory + i * 1024, 1024, 0) == 1024, "getrandom");
}

static void pass_on(int from, int to)
{
	char byte;

	must(read(from, &byte, 1) == 1, "read");
	must(write(to, &byte, 1) == 1, "write");
}

static void live(size_t kib, int from, int to)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fill(kib);
	for (;;)
		pass_on(from, to);
}

static void tick(volatile struct report *report, int from, int to)
{
	uint64_t last = now();

	must(write(to, "", 1) == 1, "write");
	for (;;) {
		pass_on(from, to);
		last = report_tick(report, last);
		report->ready = 1;
	}
}

int main(int argc, char **argv)
{
	if (argc != 4) {
		fprintf(stderr, "usage: tree REPORT PROCESSES KIB\n");
		return 2;
	}
	int fd = open(argv[1], O_RDWR | O_CREAT, 0600), first[2], from;
	size_t processes = strtoull(argv[2], NULL, 10), kib = strtoull(argv[3], NULL, 10);

	must(fd >= 0 && ftruncate(fd, 4096) == 0, argv[1]);
	volatile struct report *report =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	must(report != MAP_FAILED, "mmap");
	close(fd);
	fill(kib);
	/* From pipe to pipe: each child has two ends. */
	must(!pipe(first), "pipe");
	from = first[0];
	for (size_t i = 1; i < processes; i++) {
		int next[2];
		pid_t child;

		must(!pipe(next), "pipe");
		child = fork();
		must(child >= 0, "fork");
		if (!child) {
			close(first[1]);
			close(next[0]);
			live(kib, from, next[1]);
		}
		close(from);
		close(next[1]);
		from = next[0];
	}
	tick(report, from, first[1]);
}
