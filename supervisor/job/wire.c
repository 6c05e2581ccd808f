/*
 * wire.c - introductions of both ends, then lines: sealed, sent, received, opened.
 */
#include "supervisor/job/wire.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sodium.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/test_hooks.h"

#define HELLO    "trecr-job-1 "
#define SEAL     16 /* bytes of the hash in front of a line */
#define SEAL_LEN (2 * SEAL + 1)

/* Between two looks at what might end a wait. */
#define LOOK_MS 200

_Static_assert(WIRE_KEY == crypto_auth_hmacsha256_KEYBYTES, "a key of the hash");
_Static_assert(WIRE_KEY == crypto_auth_hmacsha256_BYTES, "what the hash gives is a key");

/* ---- hashes ---- */

void wire_new_secret(uint8_t secret[WIRE_KEY])
{
	/* Fails where there are no random numbers: then nothing would be secret. */
	BUG_ON(sodium_init() < 0);
	randombytes_buf(secret, WIRE_KEY);
}

void wire_key_text(char text[WIRE_KEY_TEXT], const uint8_t key[WIRE_KEY])
{
	(void)sodium_bin2hex(text, WIRE_KEY_TEXT, key, WIRE_KEY);
}

static int parse_hex(const char *text, uint8_t *to, size_t bytes)
{
	const char *end;
	size_t n;

	return sodium_hex2bin(to, bytes, text, 2 * bytes, NULL, &n, &end) || n != bytes ? -1
											: 0;
}

int wire_parse_key(const char *text, uint8_t key[WIRE_KEY])
{
	return strlen(text) < WIRE_KEY_TEXT - 1 ? -1 : parse_hex(text, key, WIRE_KEY);
}

/* What is hashed differs by @purpose, so that no answer serves for another one. */
static void hash_introduction(
	uint8_t out[WIRE_KEY], const struct wire_introduction *i, const char *purpose)
{
	crypto_auth_hmacsha256_state state;

	crypto_auth_hmacsha256_init(&state, i->secret, WIRE_KEY);
	crypto_auth_hmacsha256_update(&state, (const uint8_t *)purpose, strlen(purpose) + 1);
	crypto_auth_hmacsha256_update(&state, i->theirs, WIRE_KEY);
	crypto_auth_hmacsha256_update(&state, i->ours, WIRE_KEY);
	crypto_auth_hmacsha256_final(&state, out);
}

static void hash_line(char text[SEAL_LEN], const uint8_t key[WIRE_KEY], uint64_t number,
	const char *line, size_t length)
{
	crypto_auth_hmacsha256_state state;
	uint8_t hash[WIRE_KEY];

	crypto_auth_hmacsha256_init(&state, key, WIRE_KEY);
	crypto_auth_hmacsha256_update(&state, (const uint8_t *)&number, sizeof(number));
	crypto_auth_hmacsha256_update(&state, (const uint8_t *)line, length);
	crypto_auth_hmacsha256_final(&state, hash);
	(void)sodium_bin2hex(text, SEAL_LEN, hash, SEAL);
}

/* ---- the introduction ---- */

char *wire_hello(struct wire_introduction *i)
{
	char number[WIRE_KEY_TEXT];

	wire_new_secret(i->theirs);
	wire_key_text(number, i->theirs);
	return xasprintf(HELLO "%s\n", number);
}

int wire_check_hello(struct wire_introduction *i, const char *line, char **answer)
{
	char number[WIRE_KEY_TEXT], proof[WIRE_KEY_TEXT];
	uint8_t hash[WIRE_KEY];

	if (strncmp(line, HELLO, strlen(HELLO)) ||
		wire_parse_key(line + strlen(HELLO), i->theirs))
		return -1;
	wire_new_secret(i->ours);
	hash_introduction(hash, i, "who listens");
	wire_key_text(number, i->ours);
	wire_key_text(proof, hash);
	*answer = xasprintf("%s %s\n", number, proof);
	return 0;
}

static int check_introduction(
	const struct wire_introduction *i, const char *text, const char *purpose)
{
	uint8_t wanted[WIRE_KEY], got[WIRE_KEY];

	hash_introduction(wanted, i, purpose);
	return wire_parse_key(text, got) || sodium_memcmp(wanted, got, WIRE_KEY) ? -1 : 0;
}

int wire_check_answer(struct wire_introduction *i, const char *line, char **proof)
{
	char text[WIRE_KEY_TEXT];
	uint8_t hash[WIRE_KEY];

	if (strlen(line) < WIRE_KEY_TEXT || wire_parse_key(line, i->ours) ||
		check_introduction(i, line + WIRE_KEY_TEXT, "who listens"))
		return -1;
	hash_introduction(hash, i, "who connects");
	wire_key_text(text, hash);
	*proof = xasprintf("%s\n", text);
	return 0;
}

int wire_check_proof(const struct wire_introduction *i, const char *line)
{
	return check_introduction(i, line, "who connects");
}

void wire_seal(struct wire *w, const struct wire_introduction *i, bool connects)
{
	hash_introduction(connects ? w->send_key : w->receive_key, i, "lines to who listens");
	hash_introduction(connects ? w->receive_key : w->send_key, i, "lines to who connects");
	w->sealed = true;
}

/* ---- lines ---- */

static char *seal_line(struct wire *w, const char *line)
{
	char seal[SEAL_LEN];

	if (!w->sealed)
		return xasprintf("%s\n", line);
	hash_line(seal, w->send_key, w->sent++, line, strlen(line));
	return xasprintf("%s %s\n", seal, line);
}

int wire_say(struct wire *w, const char *line)
{
	cleanup_free char *text = seal_line(w, line);
	size_t length = strlen(text);

	/* It fits the socket's buffer, unless nobody has read from it for long. */
	return send(w->fd, text, length, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)length ? 0
											 : -1;
}

int wire_say_waiting(struct wire *w, const char *line, int (*look)(void *arg), void *arg)
{
	cleanup_free char *text = seal_line(w, line);
	size_t length = strlen(text), sent = 0;

	while (sent < length) {
		struct pollfd room = {.fd = w->fd, .events = POLLOUT};
		ssize_t n =
			send(w->fd, text + sent, length - sent, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n > 0) {
			sent += n;
			continue;
		}
		if ((errno != EAGAIN && errno != EINTR) || look(arg)) {
			/* The other end must not take part of a line and what follows for one. */
			(void)shutdown(w->fd, SHUT_WR);
			return -1;
		}
		(void)poll(&room, 1, LOOK_MS);
	}
	return 0;
}

int wire_receive(struct wire *w)
{
	char part[4096];
	ssize_t n = recv(w->fd, part, sizeof(part), MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	if (!n) {
		errno = 0;
		return -1;
	}
	buf_add(&w->in, part, n);
	return 0;
}

static int unseal_line(struct wire *w, char *line)
{
	char seal[SEAL_LEN];
	size_t length = strlen(line);

	if (!w->sealed)
		return 0;
	if (length < SEAL_LEN)
		return -1;
	hash_line(seal, w->receive_key, w->received++, line + SEAL_LEN, length - SEAL_LEN);
	if (sodium_memcmp(seal, line, SEAL_LEN - 1))
		return -1;
	memmove(line, line + SEAL_LEN, length - SEAL_LEN + 1);
	return 0;
}

int wire_take_line(struct wire *w, char **line)
{
	char *end = w->in.len ? memchr(w->in.data, '\n', w->in.len) : NULL;
	size_t used;

	*line = NULL;
	if (!end)
		return w->in.len > WIRE_LINE_MAX ? -1 : 0;
	used = end + 1 - (char *)w->in.data;
	*line = strndup(w->in.data, used - 1);
	memmove(w->in.data, end + 1, w->in.len - used);
	w->in.len -= used;
	if (*line && !unseal_line(w, *line))
		return 1;
	free(*line);
	*line = NULL;
	return -1;
}

void wire_close(struct wire *w)
{
	util_close(&w->fd);
	buf_free(&w->in);
	sodium_memzero(w, sizeof(*w));
	w->fd = -1;
}

static void set_option(int fd, int level, int option, int value)
{
	/* Without it the connection ends later. */
	(void)setsockopt(fd, level, option, &value, sizeof(value));
}

void wire_watch(int fd)
{
	int ms = test_cut_ms() ? test_cut_ms() : WIRE_CUT_MS, third = ms / 3000 ? ms / 3000 : 1;

	set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, third);
	set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, third);
	set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 2);
	set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, ms);
	set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
}
