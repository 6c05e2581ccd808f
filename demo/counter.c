/*
 * counter - four threads, each with a file of its own: count, sum up, write a line.
 *
 * An ordinary program: it knows nothing of checkpoints.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS        4
#define LINES          300
#define STEPS_PER_LINE 4000000

struct counter {
	pthread_t thread;
	int number;
	uint64_t sum;
};

static void *count(void *arg)
{
	struct counter *c = arg;
	uint64_t random = c->number;
	char name[32];

	snprintf(name, sizeof(name), "counter-%d.txt", c->number);
	FILE *file = fopen(name, "w");

	if (!file) {
		perror(name);
		exit(1);
	}
	for (int line = 1; line <= LINES; line++) {
		for (int i = 0; i < STEPS_PER_LINE; i++) {
			random = random * 6364136223846793005 + 1442695040888963407;
			c->sum += random >> 33;
		}
		fprintf(file, "%d %llu\n", line, (unsigned long long)c->sum);
		fflush(file);
	}
	fclose(file);
	return NULL;
}

int main(void)
{
	struct counter counters[THREADS] = {0};

	for (int i = 0; i < THREADS; i++) {
		counters[i].number = i + 1;
		if (pthread_create(&counters[i].thread, NULL, count, &counters[i]) != 0)
			return 1;
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(counters[i].thread, NULL);
		printf("thread %d: %llu\n", i + 1, (unsigned long long)counters[i].sum);
	}
	printf("finished\n");
	return 0;
}
