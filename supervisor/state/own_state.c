/* own_state.c - a file of /proc/self for each text. */
#include "supervisor/state/own_state.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/procfs.h"
#include "lib/util.h"

static char *read_own(const char *path)
{
	char *text = NULL;
	size_t size;

	return read_file(path, &text, &size, NULL) ? NULL : text;
}

int own_state_read(struct own_state *own, struct err *e)
{
	own->status = procfs_status(getpid(), getpid(), e);
	own->cgroup = read_own("/proc/self/cgroup");
	own->label = read_own("/proc/self/attr/current");
	own->login_id = read_own("/proc/self/loginuid");
	own->audit_session = read_own("/proc/self/sessionid");
	return own->status ? 0 : -1;
}

void own_state_free(struct own_state *own)
{
	free(own->status);
	free(own->cgroup);
	free(own->label);
	free(own->login_id);
	free(own->audit_session);
	memset(own, 0, sizeof(*own));
}
