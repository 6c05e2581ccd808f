/* gen OUTPUT API-FILE: prints one of the files made from an API table. */
#include <stdio.h>
#include <string.h>

#include "lib/util.h"
#include "stubs/gen/api.h"

static const struct {
	const char *name;
	int (*generate)(const struct api *api, FILE *out, struct err *e);
} outputs[] = {
	{"entries", gen_entries},
	{"procs", gen_procs},
	{"info", gen_info},
	{"index", gen_index},
	{"calls", gen_calls},
	{"check", gen_check},
	{"names", gen_names},
};

int main(int argc, char **argv)
{
	struct err e = ERR_INIT;
	struct api api = {0};

	for (size_t i = 0; argc == 3 && i < ARRAY_SIZE(outputs); i++) {
		if (strcmp(outputs[i].name, argv[1]))
			continue;
		if (api_read(&api, argv[2], &e) < 0 ||
			outputs[i].generate(&api, stdout, &e) < 0) {
			fprintf(stderr, "gen: %s\n", e.msg);
			return 1;
		}
		return fflush(stdout) ? 1 : 0;
	}
	fprintf(stderr, "usage: gen entries|procs|info|index|calls|check|names API-FILE\n");
	return 2;
}
