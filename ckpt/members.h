/*
 * members.h - the file of a job's checkpoint that says of which members' it consists:
 *
 *	job 00112233445566778899aabbccddeeff
 *	members 2
 *	0 3f...		the checkpoint id of rank-0/
 *	1 9c...
 */
#ifndef CKPT_MEMBERS_H
#define CKPT_MEMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/err.h"

#define MEMBERS_MAX 4096

struct members {
	uint8_t job_id[16]; /* rank 0's */
	size_t count;
	uint8_t (*ids)[16]; /* of their checkpoints, by rank */
};

/* Whether the directory @fd is a checkpoint of a job. */
bool members_present(int fd);

/* @path, of the directory, is for messages. */
int members_write(int fd, const struct members *m, const char *path, struct err *e);
/* Refuses what others could have written. */
int members_read(int fd, struct members *m, const char *path, struct err *e);
void members_free(struct members *m);

/* "%02x" of each byte of an id; 0 when @text, up to its end or a blank, is one. */
#define MEMBERS_ID_TEXT 33
void members_id_text(char text[MEMBERS_ID_TEXT], const uint8_t id[16]);
int members_parse_id(const char *text, uint8_t id[16]);

#endif
