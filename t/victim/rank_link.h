/*
 * rank_link.h - what the ranks of a job tell each other without a descriptor: where symbolic links lead to. For victims
 * that run as members of a job.
 */
#ifndef T_VICTIM_RANK_LINK_H
#define T_VICTIM_RANK_LINK_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Have the link "@what.@rank" lead to @text, in the place of what it led to. */
static inline void rank_link_set(const char *what, int rank, const char *text)
{
	char name[32], beside[40];

	snprintf(name, sizeof(name), "%s.%d", what, rank);
	snprintf(beside, sizeof(beside), "%s.new", name);
	/* After a restart, the name beside it may be gone in between. */
	do {
		if ((unlink(beside) && errno != ENOENT) ||
			(symlink(text, beside) && errno != EEXIST)) {
			perror(beside);
			exit(1);
		}
	} while (rename(beside, name));
}

/* Where "@what.@rank" leads to, in @text, ended by NUL. 0, or -1 where there is no such link. */
static inline int rank_link_get(const char *what, int rank, char *text, size_t size)
{
	char name[32];
	ssize_t length;

	snprintf(name, sizeof(name), "%s.%d", what, rank);
	length = readlink(name, text, size - 1);
	if (length < 0)
		return -1;
	text[length] = 0;
	return 0;
}

#endif
