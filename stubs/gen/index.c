/* The numbers of the functions in the table: INDEX_NAME, and CALL_COUNT of them. */
#include "stubs/gen/api.h"

int gen_index(const struct api *api, FILE *out, struct err *e)
{
	fputs("#pragma once\n\nenum {\n", out);
	for (size_t i = 0; i < api->call_count; i++)
		fprintf(out, "\tINDEX_%s,\n", api->calls[i].name);
	fputs("\tCALL_COUNT,\n};\n", out);
	return 0;
}
