/*
 * control_protocol.c - names of directories and sockets, the check that a directory is safe,
 * and the escapes of a line.
 */
#include "supervisor/control/control_protocol.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* The id outside of our user namespace of @uid in it: where all have a /tmp in common, the root of such a
 * namespace is not the real one. */
static unsigned id_outside(uid_t uid)
{
	cleanup_free char *map = NULL;
	unsigned inside, outside, count;
	size_t len;
	int n = 0;

	if (read_file("/proc/self/uid_map", &map, &len, NULL))
		return uid;
	for (const char *line = map;
		sscanf(line, "%u %u %u%n", &inside, &outside, &count, &n) == 3; line += n)
		if (uid - inside < count)
			return outside + (uid - inside);
	return uid;
}

char *control_dir(uid_t uid, int choice)
{
	return xasprintf(choice ? "/run/user/%u/trecr" : "/tmp/trecr-%u", id_outside(uid));
}

int control_check_dir(const char *dir, uid_t uid, struct err *e)
{
	struct stat st;

	if (lstat(dir, &st) < 0)
		return err_set(e, errno, "cannot examine %s", dir);
	if (!S_ISDIR(st.st_mode))
		return err_set(e, 0, "%s is not a directory: remove it", dir);
	if (st.st_uid != uid)
		return err_set(e, 0, "%s belongs to user %u, not %u", dir, st.st_uid, uid);
	if (st.st_mode & 077)
		return err_set(e, 0, "%s is open to others (mode %04o, must be 0700)", dir,
			st.st_mode & 07777);
	return 0;
}

void control_address(struct sockaddr_un *address, const char *dir, pid_t pid, unsigned turn)
{
	cleanup_free char *suffix = turn ? xasprintf(".%u", turn) : xstrdup("");
	int n;

	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	n = snprintf(address->sun_path, sizeof(address->sun_path), "%s/%d%s", dir, pid, suffix);
	BUG_ON(n < 0 || (size_t)n >= sizeof(address->sun_path));
}

void control_escape(struct buf *out, const char *value)
{
	for (; *value; value++) {
		if (*value == '\n')
			buf_add(out, "\\n", 2);
		else if (*value == '\\')
			buf_add(out, "\\\\", 2);
		else
			buf_add(out, value, 1);
	}
}

void control_unescape(char *value)
{
	char *to = value;

	for (; *value; value++) {
		if (*value == '\\' && value[1])
			*to++ = *++value == 'n' ? '\n' : *value;
		else
			*to++ = *value;
	}
	*to = 0;
}
