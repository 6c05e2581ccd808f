/*
 * launcher_restore.c - variables go into records of the process, the connection through a socket that
 * its lower half has made, and that is borrowed.
 */
#include "supervisor/split/launcher_restore.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/passed_fds.h"
#include "lib/util.h"
#include "shared/launcher_variables.h"
#include "supervisor/split/lower_half.h"
#include "supervisor/split/mpi_libraries.h"
#include "supervisor/split/stub_libraries.h"
#include "supervisor/target/remote.h"

#define CONNECT_NS 60000000000ull

int launcher_connection(void)
{
	const char *text = getenv("PMI_FD");
	int fd = text ? atoi(text) : -1;
	struct stat st;

	return fd > 2 && !fstat(fd, &st) && S_ISSOCK(st.st_mode) ? fd : -1;
}

bool launcher_may_be_wanted(const struct process *p)
{
	static const char variable[] = STUB_KINDS "=";
	cleanup_free char *path = xasprintf("/proc/%d/environ", p->pid);
	cleanup_free char *text = NULL;
	size_t length;

	if (read_file(path, &text, &length, NULL))
		return false;
	for (const char *at = text; at < text + length; at += strlen(at) + 1)
		if (!strncmp(at, variable, strlen(variable)))
			return strstr(at, "mpi");
	return false;
}

bool launcher_is_wanted(const struct process *p)
{
	uint64_t state = 0;

	return !lower_peek(p->pid, RECORDS_LIVE + offsetof(struct records, mpi), &state,
		       sizeof(state)) &&
	       state;
}

static int add_variable(struct records_launcher *l, const char *variable, struct err *e)
{
	size_t size = strlen(variable) + 1;

	if (size > sizeof(l->text) - l->size)
		return err_set(e, 0,
			"the launcher's variables in the environment are longer than %zu bytes",
			sizeof(l->text));
	memcpy(l->text + l->size, variable, size);
	l->size += size;
	return 0;
}

/* Open MPI 4 and 5 read other ranks' memory by process ids. Where one rank is in a pid namespace of its own, an id is
 * that of another process; and all ranks must do the same. */
static int add_no_reading(struct records_launcher *l, struct err *e)
{
	static const char *const names[] = {
		"OMPI_MCA_btl_vader_single_copy_mechanism", "OMPI_MCA_smsc"};
	static const char *const values[] = {"none", "^cma"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		cleanup_free char *variable = xasprintf("%s=%s", names[i], values[i]);

		if (!getenv(names[i]) && add_variable(l, variable, e))
			return -1;
	}
	return 0;
}

/* Where they go, if nothing is there yet. */
static int map_records(struct process *p, struct err *e)
{
	struct remote r;
	int64_t at = 0;
	uint64_t there;

	if (!lower_peek(p->pid, RECORDS_LAUNCHER, &there, sizeof(there)))
		return 0;
	if (remote_begin(&r, p, &p->threads[0], e))
		return -1;
	if (REMOTE_CALL(&r, &at, e, SYS_mmap, RECORDS_WINDOW, RECORDS_CHUNK,
		    PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
		    -1ul, 0)) {
		(void)remote_end(&r, NULL);
		return -1;
	}
	if (remote_end(&r, e))
		return -1;
	return at < 0 ? err_set(e, (int)-at,
				"process %d: no memory for the launcher's variables", p->pid)
		      : 0;
}

int launcher_describe(
	struct records_launcher *l, const char *library, unsigned former, struct err *e)
{
	l->mpi = mpi_library_choose(library, former, l->names, sizeof(l->names));
	for (char **v = environ; *v; v++) {
		if (!variable_is_launchers(*v) && !variable_is_librarys(*v))
			continue;
		if (add_variable(l, *v, e))
			return -1;
	}
	return add_no_reading(l, e);
}

int launcher_give_variables(struct process *p, bool launcher, const char *library,
	unsigned former, const char *other, struct err *e)
{
	cleanup_free struct records_launcher *l = xcalloc(1, sizeof(*l));

	if (map_records(p, e))
		return -1;
	l->given = 1;
	if ((launcher && launcher_describe(l, library, former, e)) ||
		(other && add_variable(l, other, e)))
		return -1;
	return tracee_write(p->mem_fd, RECORDS_LAUNCHER, l, sizeof(*l), e);
}

static int send_connection(struct process *p, int number, int connection, struct err *e)
{
	cleanup_fd int pidfd = syscall(SYS_pidfd_open, p->pid, 0);
	cleanup_fd int to = pidfd < 0 ? -1 : syscall(SYS_pidfd_getfd, pidfd, number, 0);

	if (to < 0 || passed_fds_send(to, "", 1, &connection, 1, MSG_DONTWAIT) < 0)
		return err_set(e, errno,
			"cannot hand the connection to the launcher to process %d", p->pid);
	return 0;
}

int launcher_give_connection(struct process *p, struct err *e)
{
	int connection = launcher_connection(), number;

	if (connection < 0)
		return 0;
	if (lower_order(p, LOWER_CONNECT, NULL, 0, clock_ns(CLOCK_MONOTONIC) + CONNECT_NS, e) ||
		tracee_read(p->mem_fd,
			LOWER_SHARED + offsetof(struct lower_table, connection_fd), &number,
			sizeof(number), e))
		return -1;
	return send_connection(p, number, connection, e);
}
