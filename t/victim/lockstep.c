/*
 * lockstep.c - one of several members of a job that have nothing between them but names of
 * files: each counts rounds, and begins the next when all others have begun the last. So no
 * member ever sees another more than one round away; if they were saved at different times,
 * they do.
 *
 * The number of a round is where the symbolic link "round.RANK" leads to: there is no
 * descriptor of it. Rank and size come from the launcher (PMI_RANK, PMI_SIZE). A file in shared
 * memory can be given, which is mapped all the time.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rank_link.h"

#define READY_ROUNDS 20
#define END          1000000000L
#define AGAIN        50 /* polls */

static int rank, size;

static void publish(long round)
{
	char text[32];

	snprintf(text, sizeof(text), "%ld", round);
	rank_link_set("round", rank, text);
}

/* 0 when it has not said so yet. */
static long round_of(int other)
{
	char text[32];

	return rank_link_get("round", other, text, sizeof(text)) ? 0 : atol(text);
}

/* Links that have been removed come back: each member says again what round it is in. */
static void await_others(long round)
{
	for (int other = 0; other < size; other++) {
		long theirs, polls = 0;

		while ((theirs = round_of(other)) < round) {
			if (++polls % AGAIN == 0)
				publish(round);
			usleep(500);
		}
		if (theirs > round + 1 && theirs != END) {
			printf("rank %d is in round %ld and rank %d in round %ld\n", rank,
				round, other, theirs);
			exit(1);
		}
	}
}

static void map(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || ftruncate(fd, 4096) ||
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED) {
		perror(path);
		exit(1);
	}
	close(fd);
}

int main(int argc, char *argv[])
{
	rank = atoi(getenv("PMI_RANK"));
	size = atoi(getenv("PMI_SIZE"));
	if (argc > 1)
		map(argv[1]);
	for (long round = 1; access("go", F_OK); round++) {
		publish(round);
		await_others(round);
		if (round == READY_ROUNDS) {
			printf("ready\n");
			fflush(stdout);
		}
	}
	publish(END);
	printf("ok\n");
	return 0;
}
