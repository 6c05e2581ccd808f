/*
 * wire.h - a connection that carries lines: to a supervisor of this machine as they are, to one
 * of another machine sealed. There, both ends have shown each other that they know the secret
 * in a member's file, and each line has a keyed hash in front of it, of its text and its
 * number: who sits between cannot add, change, repeat or reorder one. Lines are not encrypted:
 * what they tell is paths and messages.
 *
 * The hash is HMAC-SHA-256 of libsodium. The kernel has one as well (AF_ALG), but many machines
 * have that turned off, or not loaded.
 */
#ifndef SUPERVISOR_JOB_WIRE_H
#define SUPERVISOR_JOB_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/err.h"
#include "lib/util.h"

#define WIRE_KEY      32
#define WIRE_KEY_TEXT (2 * WIRE_KEY + 1)

/* Bytes of a line that are accepted from the other end. */
#define WIRE_LINE_MAX 8192

struct wire {
	int fd; /* -1: closed */
	bool sealed;
	uint8_t send_key[WIRE_KEY], receive_key[WIRE_KEY];
	uint64_t sent, received; /* lines */
	struct buf in;
};

#define WIRE_CLOSED                                                                            \
	{                                                                                      \
		.fd = -1                                                                       \
	}

/* Random bytes, for a secret. */
void wire_new_secret(uint8_t secret[WIRE_KEY]);
void wire_key_text(char text[WIRE_KEY_TEXT], const uint8_t key[WIRE_KEY]);
int wire_parse_key(const char *text, uint8_t key[WIRE_KEY]);

/*
 * The introduction on a TCP connection, lines of text; numbers are random and used once:
 *
 *	who connects	"trecr-job-1 NUMBER"
 *	who listens	"NUMBER HASH"	it knows the secret
 *	who connects	"HASH"		so does the other
 */
struct wire_introduction {
	uint8_t secret[WIRE_KEY];
	uint8_t theirs[WIRE_KEY], ours[WIRE_KEY]; /* numbers: who connects, who listens */
};

#define WIRE_INTRODUCTION_MAX 160 /* bytes of its longest line */

/* The lines of who connects; the caller's to free. wire_check_answer() is -1 when the other end
 * does not know the secret. */
char *wire_hello(struct wire_introduction *i);
int wire_check_answer(struct wire_introduction *i, const char *line, char **proof);
/* The same of who listens. */
int wire_check_hello(struct wire_introduction *i, const char *line, char **answer);
int wire_check_proof(const struct wire_introduction *i, const char *line);

/* @w, whose fd is connected, is sealed from now on. */
void wire_seal(struct wire *w, const struct wire_introduction *i, bool connects);

/* Send @line, without its newline, at once and whole; -1 when the connection does not take it.
 */
int wire_say(struct wire *w, const char *line);
/* The same, but wait while the connection takes no more; @look(@arg) is called now and then meanwhile, and ends that
 * with anything but 0. After a failure nothing more can be sent. */
int wire_say_waiting(struct wire *w, const char *line, int (*look)(void *arg), void *arg);

/* Take in what has arrived: -1 when the connection has ended, with errno 0 if the other end
 * closed it. */
int wire_receive(struct wire *w);
/* The next line that has arrived, the caller's to free, in *line: 1; 0 when there is none yet;
 * -1: it is forged, or too long. */
int wire_take_line(struct wire *w, char **line);

void wire_close(struct wire *w);

/* A connection to another machine that nothing comes through ends after 15 s, but not while its
 * other end is at work. */
#define WIRE_CUT_MS 15000
void wire_watch(int fd);

#endif
