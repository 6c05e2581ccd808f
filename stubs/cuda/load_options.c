/* Options of calls that load programs for the device: which of them are recorded. */
#include "shared/cuda/calls.h"
#include "shared/raw.h"
#include "stubs/cuda/objects.h"

#include "cuda.index.h"

/* Buffers for what the compiler says: CU_JIT_INFO_LOG_BUFFER and its size, the same for errors.
 * Nobody would read it when the call is made again. */
static int is_log(uint32_t option)
{
	return option >= 3 && option <= 6;
}

/* Lists of names and addresses in the program's memory: CU_JIT_GLOBAL_SYMBOL_NAMES and
 * _ADDRESSES, CU_JIT_REFERENCED_KERNEL_NAMES and _VARIABLE_NAMES. */
static int is_list(uint32_t option)
{
	return option == 17 || option == 18 || option == 25 || option == 27;
}

static const struct call_param *jit_options(
	const struct call_info *info, const uint64_t *arguments)
{
	for (unsigned i = 0; i < info->param_count; i++)
		if (info->params[i].kind == API_JIT && arguments[info->params[i].word])
			return &info->params[i];
	return NULL;
}

static uint32_t count_of(
	const struct call_info *info, const struct call_param *p, const uint64_t *arguments)
{
	return arguments[info->params[p->length].word];
}

STUB_HIDDEN int options_have_lists(const struct call_info *info, const uint64_t *arguments)
{
	const struct call_param *p = jit_options(info, arguments);
	const uint32_t *options = p ? (const uint32_t *)arguments[p->word] : NULL;

	for (uint32_t i = 0; p && i < count_of(info, p, arguments); i++)
		if (is_list(options[i]))
			return 1;
	return 0;
}

/* The values are the next parameter. */
STUB_HIDDEN void options_filter(const struct call_info *info, uint64_t *arguments)
{
	const struct call_param *p = jit_options(info, arguments);
	uint32_t *options = p ? (uint32_t *)arguments[p->word] : NULL;
	uint64_t *values = p ? (uint64_t *)arguments[p[1].word] : NULL, count = 0;

	if (!p)
		return;
	for (uint32_t i = 0; i < count_of(info, p, arguments); i++) {
		if (is_log(options[i]))
			continue;
		options[count] = options[i];
		if (values)
			values[count] = values[i];
		count++;
	}
	arguments[info->params[p->length].word] = count;
}

/* ---- of libraries ---- */

/* CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE: its value is a structure, which the
 * program need not keep; what that leads to, it must. */
#define TABLES      0
#define TABLES_SIZE 32

/* Arguments of cuLibraryLoadData. */
enum { LIBRARY_OPTIONS = 5, LIBRARY_VALUES, LIBRARY_COUNT };

/* The value of the option, at most one; NULL: it is not there. */
static uint64_t *tables_option(unsigned index, const uint64_t *arguments)
{
	const uint32_t *options = (const uint32_t *)arguments[LIBRARY_OPTIONS];
	uint64_t *values = (uint64_t *)arguments[LIBRARY_VALUES];

	if (index != INDEX_cuLibraryLoadData || !options || !values)
		return NULL;
	for (uint32_t i = 0; i < (uint32_t)arguments[LIBRARY_COUNT]; i++)
		if (options[i] == TABLES && values[i])
			return &values[i];
	return NULL;
}

STUB_HIDDEN uint64_t options_bytes(unsigned index, const uint64_t *arguments)
{
	return tables_option(index, arguments) ? TABLES_SIZE : 0;
}

STUB_HIDDEN void options_copy(unsigned index, const uint64_t *arguments, void *to)
{
	uint64_t *value = tables_option(index, arguments);

	if (!value)
		return;
	raw_copy(to, (const void *)*value, TABLES_SIZE);
	*value = (uint64_t)to;
}
