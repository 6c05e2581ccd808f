/*
 * supervisor_options.h - the options that trecr-run and trecr-restart share: how the program
 * they supervise is to be checkpointed.
 */
#ifndef SUPERVISOR_START_SUPERVISOR_OPTIONS_H
#define SUPERVISOR_START_SUPERVISOR_OPTIONS_H

#include "lib/err.h"
#include "lib/opts.h"
#include "supervisor/start/supervisor.h"

/* The exit status when trecr-run or trecr-restart itself fails: else it is the program's. */
#define OWN_FAILURE 125

/* A way to deal with TCP connections to the outside; the field is an enum fd_tcp. */
int opt_tcp(void *field, const char *value, struct err *e);
/* The word that chooses it. */
const char *opt_tcp_text(enum fd_tcp mode);
/* struct pack_choice: lz4, zstd[:LEVEL] or none. */
int opt_compress(void *field, const char *value, struct err *e);

/* uint64_t: bytes, "512K", "2G". */
int opt_bytes(void *field, const char *value, struct err *e);

/* What options mean that trecr-ckpt has as well. */
#define HELP_FORK                                                                              \
	"let the program run on while its memory is written,\n"                                \
	"from a copy made by fork"
#define HELP_RATE    "write at most BYTES (K, M, G) a second"
#define HELP_VERBOSE "say more on standard error"

/* What --save-files means without a size, in bytes. */
#define SAVE_FILES_DEFAULT (256ull << 20)

/* Rows over struct supervisor_options. */
extern const struct opt supervisor_option_rows[];

#define SUPERVISOR_OPTION_DEFAULTS                                                             \
	{                                                                                      \
		.keep = 2, .full_every = 10, .drain_s = 30, .fork_limit = FORK_LIMIT_NONE      \
	}

/* @path made absolute by the current directory, which may be another one later; the caller's
 * to free. NULL on failure. */
char *options_absolute(const char *path, struct err *e);

#endif
