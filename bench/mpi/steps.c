/*
 * Counts the instructions that calls take, also in a lower half: steps a program through them (bench/mpi/calls.c).
 *
 *	steps [-n ROUNDS] COMMAND...
 *
 * COMMAND prints names, one a line, an empty line, and then the address of a function, in hexadecimal, and its own id;
 * then it calls the function for ever, with the number of a name in front of a call, and with -1 behind it. Prints
 * "NAME INSTRUCTIONS" for each: the least of all rounds.
 */
#include <err.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAMES 64

static char *names[NAMES];
static unsigned long least[NAMES];
static int count;

static FILE *start(char **command)
{
	int ends[2];

	if (pipe(ends) < 0)
		err(1, "pipe");
	if (!fork()) {
		dup2(ends[1], 1);
		close(ends[0]);
		close(ends[1]);
		execvp(*command, command);
		err(127, "%s", *command);
	}
	close(ends[1]);
	return fdopen(ends[0], "r");
}

static void read_names(FILE *f)
{
	char *line = NULL;
	size_t room = 0;

	while (getline(&line, &room, f) > 1 && count < NAMES) {
		line[strcspn(line, "\n")] = 0;
		least[count] = -1ul;
		names[count++] = strdup(line);
	}
	free(line);
}

/* Signals that are not from a step go to the program. */
static void step(pid_t pid, int *signal_number)
{
	int status;

	if (ptrace(PTRACE_SINGLESTEP, pid, 0, *signal_number) < 0 ||
		waitpid(pid, &status, __WALL) != pid || !WIFSTOPPED(status))
		err(1, "step");
	*signal_number = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
}

static void count_rounds(pid_t pid, unsigned long mark, int rounds)
{
	unsigned long steps = 0;
	int number = -1, signal_number = 0;

	while (rounds > 0) {
		struct user_regs_struct r;

		step(pid, &signal_number);
		steps++;
		if (ptrace(PTRACE_GETREGS, pid, 0, &r) < 0)
			err(1, "PTRACE_GETREGS");
		if (r.rip != mark)
			continue;
		if ((int)r.rdi < 0 && number >= 0 && steps < least[number])
			least[number] = steps;
		number = (int)r.rdi;
		rounds -= number == count - 1;
		steps = 0;
	}
}

int main(int argc, char **argv)
{
	int rounds = 5, status;
	unsigned long mark;
	pid_t pid;
	FILE *f;

	if (argc > 2 && !strcmp(argv[1], "-n")) {
		rounds = atoi(argv[2]);
		argv += 2;
	}
	f = start(argv + 1);
	if (!f)
		err(1, "fdopen");
	read_names(f);
	if (fscanf(f, "%lx %d", &mark, &pid) != 2)
		errx(1, "the program does not say where it is");
	if (ptrace(PTRACE_SEIZE, pid, 0, 0) < 0 || ptrace(PTRACE_INTERRUPT, pid, 0, 0) < 0 ||
		waitpid(pid, &status, __WALL) != pid)
		err(1, "cannot attach to %d", pid);
	count_rounds(pid, mark, rounds + 1);
	kill(pid, SIGKILL);
	for (int i = 0; i < count; i++)
		printf("%-32s %6lu\n", names[i], least[i] - least[0]);
	return 0;
}
