/*
 * What cuGetProcAddress hands out, as a C array of struct function_version (stubs/function_versions.h): sorted by
 * name, then by variant, then newest version first, so that the first row that is not newer
 * than the version asked for is the answer.
 */
#include "stubs/gen/api.h"

#include <stdlib.h>
#include <string.h>

#include "lib/util.h"

static int compare_names(const void *a, const void *b)
{
	const struct api_call *x = *(const struct api_call *const *)a;
	const struct api_call *y = *(const struct api_call *const *)b;
	int by_name = strcmp(x->proc, y->proc);

	if (by_name)
		return by_name;
	if (x->per_thread != y->per_thread)
		return x->per_thread - y->per_thread;
	return x->since < y->since ? 1 : -1;
}

int gen_versions(const struct api *api, FILE *out, struct err *e)
{
	const struct api_call **sorted = xcalloc(api->call_count, sizeof(*sorted));
	size_t count = 0;

	for (size_t i = 0; i < api->call_count; i++)
		if (api->calls[i].since)
			sorted[count++] = &api->calls[i];
	qsort(sorted, count, sizeof(*sorted), compare_names);

	fprintf(out, "#include \"stubs/function_versions.h\"\n\n");
	for (size_t i = 0; i < count; i++)
		fprintf(out, "void %s(void);\n", sorted[i]->name);
	fprintf(out, "\nconst struct function_version %s_versions[] = {\n", api->library);
	for (size_t i = 0; i < count; i++)
		fprintf(out, "\t{\"%s\", %u, %d, %s},\n", sorted[i]->proc, sorted[i]->since,
			sorted[i]->per_thread, sorted[i]->name);
	fprintf(out, "};\nconst size_t %s_version_count = %zu;\n", api->library, count);
	free(sorted);
	return 0;
}
