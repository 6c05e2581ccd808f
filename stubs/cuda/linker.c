/*
 * Linker states. They are made again by the calls that have made them, with copies of all that was linked.
 * NVIDIA's documentation of cuLinkCreate: "optionValues must remain valid for the life of the CUlinkState if output
 * options are used. No other references to inputs are maintained after this call returns"; of cuLinkAddData and
 * cuLinkAddFile: they retain no reference to any inputs, and accept no options for logs.
 */
#include "stubs/cuda/linker.h"

#include <sys/uio.h>

#include "shared/cuda/calls.h"
#include "shared/raw.h"
#include "stubs/cuda/objects.h"
#include "stubs/cuda/read_file.h"

#include "cuda.index.h"

#define PTX      1           /* CU_JIT_INPUT_PTX, which ends with a zero byte */
#define MOST_LOG (64u << 20) /* bytes: a larger log is none that the program has */

/* ---- memory ---- */

void linker_free(struct linker_state *state)
{
	struct linker_code *code;

	while (state && (code = state->codes)) {
		state->codes = code->next;
		block_free(code, sizeof(*code) + code->size);
	}
	if (state)
		block_free(state, state->bytes);
}

static unsigned times_given(uint32_t option, unsigned count, const uint32_t *options)
{
	unsigned times = 0;

	for (unsigned i = 0; i < count; i++)
		times += options[i] == option;
	return times;
}

/* The value of @option, the last one if there are several; NULL: it is not given. */
static uint64_t *value_of(
	uint32_t option, unsigned count, const uint32_t *options, uint64_t *values)
{
	while (count-- > 0)
		if (options[count] == option)
			return &values[count];
	return NULL;
}

/* Of the log that @option is, in bytes; 0: there is none, or it stays the driver's (keeps_log()). */
static uint64_t log_size(
	uint32_t option, unsigned count, const uint32_t *options, uint64_t *values)
{
	const uint64_t *log = value_of(option, count, options, values);
	const uint64_t *size = value_of(option + 1, count, options, values);

	if (!log || !*log || !size || (uint32_t)*size > MOST_LOG)
		return 0;
	/* Which one the driver takes is not documented. */
	if (times_given(option, count, options) > 1 ||
		times_given(option + 1, count, options) > 1)
		return 0;
	return (uint32_t)*size;
}

/* As much of it as is there; the rest is left as it is. */
static void read_program(void *to, const void *program, uint64_t size)
{
	struct iovec local = {to, size}, remote = {(void *)program, size};

	if (size)
		raw(SYS_process_vm_readv, raw(SYS_getpid), &local, 1, &remote, 1, 0);
}

/* The program may have named a size that it does not have. */
static void take_log(struct linker_log *log)
{
	read_program(log->driver, log->program, log->size);
	raw_copy(log->shown, log->driver, log->size);
}

/* The log that the value of option @i leads to; NULL: it is no log, or none of ours. */
static const struct linker_log *log_of(const struct linker_state *s, unsigned i)
{
	for (unsigned n = 0; n < LINKER_LOGS; n++)
		if (s->logs[n].size && s->given[i] == (uint64_t)s->logs[n].driver)
			return &s->logs[n];
	return NULL;
}

/* Whether the driver has the address of a log of the program's: it would write there when the calls are made again. */
static int keeps_log(const struct linker_state *s)
{
	for (unsigned i = 0; i < s->count; i++)
		if ((s->options[i] == LINKER_LOG_INFO || s->options[i] == LINKER_LOG_ERROR) &&
			s->given[i] && !log_of(s, i))
			return 1;
	return 0;
}

static struct linker_state *new_state(unsigned count, const uint32_t *options, uint64_t *values)
{
	static const uint32_t logs[LINKER_LOGS] = {LINKER_LOG_INFO, LINKER_LOG_ERROR};
	uint64_t bytes = sizeof(struct linker_state) + count * (3 * sizeof(uint64_t) + 8);
	struct linker_state *s;
	char *rest;

	for (unsigned i = 0; i < LINKER_LOGS; i++)
		bytes += 2 * log_size(logs[i], count, options, values);
	s = block_new(bytes);
	if (!s)
		return NULL;
	s->bytes = bytes;
	s->count = count;
	s->program = values;
	s->values = (uint64_t *)(s + 1);
	s->given = s->values + count;
	s->shown = s->given + count;
	s->options = (uint32_t *)(s->shown + count);
	rest = (char *)(s->options + 2 * (uint64_t)count);
	raw_copy(s->options, options, count * sizeof(*options));
	raw_copy(s->values, values, count * sizeof(*values));
	for (unsigned i = 0; i < LINKER_LOGS; i++) {
		struct linker_log *log = &s->logs[i];

		log->size = log_size(logs[i], count, options, values);
		if (!log->size)
			continue;
		log->program = (char *)*value_of(logs[i], count, options, values);
		log->driver = rest;
		log->shown = rest + log->size;
		rest += 2 * log->size;
		take_log(log);
		*value_of(logs[i], count, s->options, s->values) = (uint64_t)log->driver;
	}
	raw_copy(s->given, s->values, count * sizeof(*values));
	raw_copy(s->shown, s->values, count * sizeof(*values));
	return s;
}

/* ---- what the program and the driver have written ---- */

/* Before a call: the program may have cleared a log, or set its size again. */
static void take_values(struct linker_state *s)
{
	read_program(s->shown, s->program, s->count * sizeof(*s->shown));
	for (unsigned i = 0; i < s->count; i++) {
		if (log_of(s, i)) /* the program has its own address there */
			s->shown[i] = s->values[i];
		else
			s->values[i] = s->shown[i];
	}
	for (unsigned i = 0; i < LINKER_LOGS; i++)
		take_log(&s->logs[i]);
}

/* The driver writes a log from its beginning on, and ends it by 0. */
static void show_log(struct linker_log *log)
{
	uint64_t end = log->size;

	while (end && log->driver[end - 1] == log->shown[end - 1])
		end--;
	if (end && end < log->size && !log->driver[end])
		end++;
	raw_copy(log->program, log->driver, end);
	raw_copy(log->shown, log->driver, end);
}

static void show_results(struct linker_state *s)
{
	for (unsigned i = 0; i < s->count; i++)
		if (s->values[i] != s->shown[i])
			s->program[i] = s->shown[i] = s->values[i];
	for (unsigned i = 0; i < LINKER_LOGS; i++)
		show_log(&s->logs[i]);
}

/* ---- calls ---- */

static struct object *linker_object(void *handle)
{
	struct object *o = in_records_window((uintptr_t)handle) ? handle : NULL;

	return o && o->kind == CUDA_LINKER && !is_dead(o->real) && o->value ? o : NULL;
}

static struct linker_state *linker_state(const struct object *o)
{
	return (struct linker_state *)o->value;
}

void linker_ends(const struct object *o)
{
	if (o->value)
		take_values(linker_state(o));
}

void linker_ended(const struct object *o)
{
	if (o->value)
		show_results(linker_state(o));
}

/* How the driver has it then is not documented. */
static void linker_lost(struct object *o)
{
	__atomic_or_fetch(&o->flags, CUDA_OBJECT_LOST, __ATOMIC_RELAXED);
}

/* Some options need no value, and a driver may do without the array then: what it keeps is not documented. */
static int create_without(
	unsigned index, unsigned count, const uint32_t *options, uint64_t *values, void **out)
{
	int r = cuda_perform(index, WORDS(count, WORD(options), WORD(values), WORD(out)));

	if (!r)
		linker_lost(*out);
	return r;
}

static int create_linker(
	unsigned index, unsigned count, const uint32_t *options, uint64_t *values, void **out)
{
	struct linker_state *s;
	struct object *o;
	int r;

	if (!state_usable() || !out)
		return cuda_call_down(
			index, WORDS(count, WORD(options), WORD(values), WORD(out)));
	if (count && (!options || !values))
		return create_without(index, count, options, values, out);
	s = new_state(count, options, values);
	if (!s)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = cuda_perform(index, WORDS(count, WORD(s->options), WORD(s->values), WORD(out)));
	show_results(s);
	if (r) {
		linker_free(s);
		return r;
	}
	o = *out;
	o->value = (uint64_t)s;
	o->made->arguments[0] = count;
	o->made->arguments[1] = WORD(s->options);
	o->made->arguments[2] = WORD(s->values);
	if (keeps_log(s))
		linker_lost(o);
	return 0;
}

int body_cuLinkCreate(unsigned count, const uint32_t *options, uint64_t *values, void **state)
{
	return create_linker(INDEX_cuLinkCreate, count, options, values, state);
}

int body_cuLinkCreate_v2(
	unsigned count, const uint32_t *options, uint64_t *values, void **state)
{
	return create_linker(INDEX_cuLinkCreate_v2, count, options, values, state);
}

/* A call that adds has given @r. */
static int added(struct object *o, unsigned index, const uint64_t *words, int r)
{
	if (r || linker_state(o)->is_complete || options_have_lists(&cuda_info[index], words))
		linker_lost(o);
	show_results(linker_state(o));
	return r;
}

static int add_data(unsigned index, const uint64_t *words)
{
	struct object *o = linker_object((void *)words[0]);
	int r;

	if (o)
		take_values(linker_state(o));
	r = cuda_perform(index, words);
	return o ? added(o, index, words, r) : r;
}

int body_cuLinkAddData(void *state, int type, void *data, size_t size, const char *name,
	unsigned count, const uint32_t *options, uint64_t *values)
{
	return add_data(
		INDEX_cuLinkAddData, WORDS(WORD(state), type, WORD(data), size, WORD(name),
					     count, WORD(options), WORD(values)));
}

int body_cuLinkAddData_v2(void *state, int type, void *data, size_t size, const char *name,
	unsigned count, const uint32_t *options, uint64_t *values)
{
	return add_data(
		INDEX_cuLinkAddData_v2, WORDS(WORD(state), type, WORD(data), size, WORD(name),
						count, WORD(options), WORD(values)));
}

/* The driver says what is wrong with the file. */
static int add_unreadable(struct object *o, unsigned index, const uint64_t *words)
{
	int r;

	take_values(linker_state(o));
	r = cuda_call_down(
		index, WORDS(WORD(o->real), words[1], words[2], words[3], words[4], words[5]));
	linker_lost(o);
	return added(o, index, words, r);
}

/* cuda.h: it equivalent to cuLinkAddData() on the contents of the file. It may be another one after a
 * restart, or a pipe, which can be read once. */
static int add_file(unsigned index, const uint64_t *words)
{
	struct object *o = linker_object((void *)words[0]);
	struct whole_file f = {0};
	int r;

	if (!o)
		return cuda_perform(index, words);
	r = read_file((const char *)words[2], &f);
	if (r)
		return r == CUDA_ERROR_OUT_OF_MEMORY ? r : add_unreadable(o, index, words);
	r = add_data(INDEX_cuLinkAddData_v2,
		WORDS(words[0], words[1], WORD(f.data), f.size + ((uint32_t)words[1] == PTX),
			words[2], words[3], words[4], words[5]));
	block_free(f.data, f.room);
	return r;
}

int body_cuLinkAddFile(void *state, int type, const char *path, unsigned count,
	const uint32_t *options, uint64_t *values)
{
	return add_file(INDEX_cuLinkAddFile,
		WORDS(WORD(state), type, WORD(path), count, WORD(options), WORD(values)));
}

int body_cuLinkAddFile_v2(void *state, int type, const char *path, unsigned count,
	const uint32_t *options, uint64_t *values)
{
	return add_file(INDEX_cuLinkAddFile_v2,
		WORDS(WORD(state), type, WORD(path), count, WORD(options), WORD(values)));
}

static int is_same_code(const struct linker_code *code, const struct linker_state *s)
{
	return code->size == s->result_size &&
	       !__builtin_memcmp(code->data, s->result, code->size);
}

/* The result of cuLinkComplete() at an address of ours, the same one each time; NULL: no memory. */
static void *keep_code(struct linker_state *s)
{
	struct linker_code *code = s->codes;

	while (code && !is_same_code(code, s))
		code = code->next;
	if (code)
		return code->data;
	code = block_new(sizeof(*code) + s->result_size);
	if (!code)
		return NULL;
	code->size = s->result_size;
	raw_copy(code->data, s->result, code->size);
	code->next = s->codes;
	s->codes = code;
	return code->data;
}

int body_cuLinkComplete(void *state, void **code, size_t *size)
{
	struct object *o = linker_object(state);
	struct linker_state *s = o ? linker_state(o) : NULL;
	void *kept;
	int r;

	if (!o || !code)
		return cuda_perform(
			INDEX_cuLinkComplete, WORDS(WORD(state), WORD(code), WORD(size)));
	take_values(s);
	r = cuda_perform(INDEX_cuLinkComplete,
		WORDS(WORD(state), WORD(&s->result), WORD(&s->result_size)));
	show_results(s);
	if (r) {
		linker_lost(o);
		return r;
	}
	s->is_complete = 1;
	kept = keep_code(s);
	if (!kept)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*code = kept;
	if (size)
		*size = s->result_size;
	return 0;
}
