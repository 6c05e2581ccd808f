/*
 * members.c - writes the file of members, and reads it without trusting it.
 */
#include "ckpt/members.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ckpt/image.h"
#include "ckpt/trust.h"
#include "lib/util.h"

bool members_present(int fd)
{
	return !faccessat(fd, IMAGE_MEMBERS_FILE, F_OK, AT_SYMLINK_NOFOLLOW);
}

void members_id_text(char text[MEMBERS_ID_TEXT], const uint8_t id[16])
{
	for (size_t i = 0; i < 16; i++)
		snprintf(text + 2 * i, 3, "%02x", id[i]);
}

int members_parse_id(const char *text, uint8_t id[16])
{
	for (size_t i = 0; i < 16; i++) {
		unsigned byte;

		if (strspn(text + 2 * i, "0123456789abcdef") < 2 ||
			sscanf(text + 2 * i, "%2x", &byte) != 1)
			return -1;
		id[i] = byte;
	}
	return text[32] && text[32] != ' ' && text[32] != '\n' ? -1 : 0;
}

int members_write(int fd, const struct members *m, const char *path, struct err *e)
{
	cleanup_fd int file = openat(fd, IMAGE_MEMBERS_FILE,
		O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	cleanup_free char *what = xasprintf("%s/" IMAGE_MEMBERS_FILE, path);
	cleanup_buf struct buf text = {0};
	char id[MEMBERS_ID_TEXT];

	if (file < 0)
		return err_set(e, errno, "cannot create %s", what);
	members_id_text(id, m->job_id);
	buf_printf(&text, "job %s\nmembers %zu\n", id, m->count);
	for (size_t i = 0; i < m->count; i++) {
		members_id_text(id, m->ids[i]);
		buf_printf(&text, "%zu %s\n", i, id);
	}
	return write_all(file, text.data, text.len, what, e);
}

static int parse_members(const char *text, struct members *m)
{
	char id[MEMBERS_ID_TEXT];
	int used = 0;

	if (sscanf(text, "job %32s\nmembers %zu\n%n", id, &m->count, &used) != 2 || !used ||
		members_parse_id(id, m->job_id) || !m->count || m->count > MEMBERS_MAX)
		return -1;
	m->ids = xcalloc(m->count, sizeof(*m->ids));
	for (size_t i = 0; i < m->count; i++) {
		size_t rank;

		text += used;
		used = 0;
		if (sscanf(text, "%zu %32s\n%n", &rank, id, &used) != 2 || !used || rank != i ||
			members_parse_id(id, m->ids[i]))
			return -1;
	}
	return text[used] ? -1 : 0;
}

int members_read(int fd, struct members *m, const char *path, struct err *e)
{
	cleanup_fd int file =
		openat(fd, IMAGE_MEMBERS_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	cleanup_free char *what = xasprintf("%s/" IMAGE_MEMBERS_FILE, path);
	cleanup_free char *text = NULL;
	size_t length;

	*m = (struct members){0};
	if (file < 0)
		return err_set(e, errno, "cannot open %s", what);
	if (trust_check(file, what, e) ||
		read_file_at(fd, IMAGE_MEMBERS_FILE, &text, &length, e))
		return -1;
	if (!parse_members(text, m))
		return 0;
	members_free(m);
	return err_set(e, 0, "%s is damaged", what);
}

void members_free(struct members *m)
{
	free(m->ids);
	*m = (struct members){0};
}
