/*
 * call_replay.c - arguments out of a record are prepared, the driver's function is called, and
 * what it gives is compared with what it gave.
 */
#include "lower/cuda/call_replay.h"

#include <stdlib.h>
#include <string.h>

#include "lower/cuda/cuda.h"

int call_prepare(struct call_again *again, const struct cuda_call *call)
{
	const struct call_info *info = again->info = &cuda_info[call->index];
	const struct call_param *out = call_out(info);

	if (call_lower(info, call->arguments, again->words))
		return agent_fail("%s: it needs an object that no longer exists", info->name);
	for (unsigned i = 0; i < info->param_count; i++) {
		const struct call_param *p = &info->params[i];
		uint64_t size;

		if (!p->stars || p->direction != API_OUT || !call->arguments[p->word])
			continue;
		if (p == out) {
			again->words[p->word] = (uint64_t)&again->real;
			continue;
		}
		size = call_bytes(info, p, call->arguments);
		again->scratch[i] = calloc(1, size < 8 ? 8 : size);
		if (!again->scratch[i])
			return agent_fail("no memory for results of %s", info->name);
		again->words[p->word] = (uint64_t)again->scratch[i];
	}
	return 0;
}

void call_finish(struct call_again *again)
{
	for (unsigned i = 0; i < CALL_WORDS; i++)
		free(again->scratch[i]);
}

typedef int words_function(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
	uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
	uint64_t);

int call_invoke(const struct call_again *again)
{
	words_function *f = (words_function *)cuda_function(again->info->name);
	const uint64_t *w = again->words;
	int r = f(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10], w[11],
		w[12], w[13], w[14], w[15]);

	return r ? cuda_failed(again->info->name, r) : 0;
}

int call_verify(const struct call_again *again, const struct cuda_call *call)
{
	const struct call_info *info = again->info;

	for (unsigned i = 0; i < info->param_count; i++) {
		uint64_t was = call->arguments[info->params[i].word], is;

		if (!again->scratch[i])
			continue;
		memcpy(&is, again->scratch[i], sizeof(is));
		if (is != was)
			return agent_fail(
				"%s gives %#lx here, where the program was given %#lx",
				info->name, is, was);
	}
	return 0;
}

int call_prepare_address(struct call_again *again, const struct cuda_call *call)
{
	const struct call_info *info = again->info = &cuda_info[call->index];

	if (call_lower(info, call->arguments, again->words))
		return agent_fail("%s: it needs an object that no longer exists", info->name);
	for (unsigned i = 0; i < info->param_count; i++) {
		const struct call_param *p = &info->params[i];

		if (!p->stars || p->direction != API_OUT || !call->arguments[p->word])
			continue;
		again->scratch[i] = calloc(1, sizeof(uint64_t));
		if (!again->scratch[i])
			return agent_fail("no memory for results of %s", info->name);
		again->words[p->word] = (uint64_t)again->scratch[i];
	}
	return 0;
}

int call_create(const struct cuda_call *call, void **real)
{
	struct call_again again = {0};
	int r = call_prepare(&again, call);

	if (!r)
		r = call_invoke(&again);
	if (!r)
		*real = again.real;
	call_finish(&again);
	return r;
}
