/*
 * faults - say which system call of trecr is to fail next (t/fault/fault.c).
 *
 *	faults FILE		make it, with nothing to fail
 *	faults FILE CLASS N	the Nth call of that class from now on
 *	faults FILE CLASS N PHASE	the Nth call that is made in that phase
 *	faults FILE CLASS N [PHASE] kill [PID | self | tracee]
 *		that call does not fail, but kills the supervisor, or another process, or the
 *		one that makes it, or that it is about (of class trace)
 *	faults FILE CLASS N [PHASE] stop PID [CALLS]
 *		or stops a process, which is continued that many calls of the class later, or
 *		before the first one in the thaw
 *	faults FILE CLASS N [PHASE] hold
 *		or waits until "off"
 *	faults FILE continued	exit status 0 when that process has been
 *	faults FILE fired	exit status 0 when that call has been met
 *	faults FILE off		nothing any more; exit status 0 when one has failed, else 1
 *	faults FILE killer	the process that has killed the supervisor, if not itself
 *	faults classes		their names
 *	faults phases		the names of phases: of a checkpoint, then of a restart
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/phase.h"
#include "t/fault/fault.h"

static const char *const names[FAULT_CLASSES] = {
	[FAULT_OPEN] = "open",
	[FAULT_READ] = "read",
	[FAULT_WRITE] = "write",
	[FAULT_SYNC] = "sync",
	[FAULT_NAME] = "name",
	[FAULT_LOOK] = "look",
	[FAULT_OWN] = "own",
	[FAULT_CONTROL] = "control",
	[FAULT_NUMBER] = "number",
	[FAULT_MEMORY] = "memory",
	[FAULT_PROCESS] = "process",
	[FAULT_WAIT] = "wait",
	[FAULT_TRACE] = "trace",
	[FAULT_QUEUE] = "queue",
	[FAULT_SYSV] = "sysv",
	[FAULT_MAKE] = "make",
	[FAULT_SOCKET] = "socket",
	[FAULT_MESSAGE] = "message",
	[FAULT_SETTING] = "setting",
	[FAULT_NAMESPACE] = "namespace",
	[FAULT_RAW] = "raw",
};

static const char *const phases[PHASES] = {
	[PHASE_FREEZE] = "freeze",
	[PHASE_DUMP] = "dump",
	[PHASE_WRITE] = "write",
	[PHASE_COPIES] = "copies",
	[PHASE_COMMIT] = "commit",
	[PHASE_THAW] = "thaw",
	[PHASE_CHECK] = "check",
	[PHASE_CREATE] = "create",
	[PHASE_REBUILD] = "rebuild",
	[PHASE_REGISTERS] = "registers",
	[PHASE_LET_GO] = "let-go",
};

static int find(const char *const *names, int count, const char *name)
{
	for (int i = 1; i < count; i++)
		if (!strcmp(name, names[i]))
			return i;
	return 0;
}

static int list(const char *const *names, int count)
{
	for (int i = 1; i < count; i++)
		puts(names[i]);
	return 0;
}

static struct fault_control *map(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	void *p;

	if (fd < 0 || ftruncate(fd, 4096))
		return NULL;
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return p == MAP_FAILED ? NULL : p;
}

static int signal_of(const char *what)
{
	return !strcmp(what, "kill")   ? SIGKILL
	       : !strcmp(what, "stop") ? SIGSTOP
	       : !strcmp(what, "hold") ? FAULT_HOLD
				       : 0;
}

static int target_of(const char *who)
{
	return !strcmp(who, "self")     ? FAULT_SELF
	       : !strcmp(who, "tracee") ? FAULT_TRACEE
					: atoi(who);
}

int main(int argc, char **argv)
{
	struct fault_control *c;
	const char *number;
	int class = 0;

	if (argc == 2 && !strcmp(argv[1], "classes"))
		return list(names, FAULT_CLASSES);
	if (argc == 2 && !strcmp(argv[1], "phases"))
		return list(phases, PHASES);
	c = argc > 1 ? map(argv[1]) : NULL;
	if (!c)
		return 2;
	if (argc == 2)
		return 0;
	if (argc == 3 && !strcmp(argv[2], "killer")) {
		if (c->other)
			printf("%d\n", c->other);
		return 0;
	}
	if (argc == 3 && !strcmp(argv[2], "continued"))
		return !c->continued;
	if (argc == 3 && !strcmp(argv[2], "fired"))
		return !c->fired;
	if (argc == 3) {
		c->class = FAULT_NONE;
		return !c->fired;
	}
	number = argv[3];
	class = find(names, FAULT_CLASSES, argv[2]);
	if (!class)
		return 2;
	c->class = FAULT_NONE;
	c->fired = 0;
	c->other = 0;
	c->phase = argc > 4 ? find(phases, PHASES, argv[4]) : 0;
	if (c->phase)
		argv++, argc--;
	c->signal = argc < 5 ? 0 : signal_of(argv[4]);
	if (argc > 4 && !c->signal)
		return 2;
	c->continued = 0;
	c->stop_calls = argc < 7 ? 0 : atoi(argv[6]);
	c->target = argc < 6 ? 0 : target_of(argv[5]);
	c->countdown = atoi(number);
	c->class = class;
	return 0;
}
