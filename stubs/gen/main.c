/* gen OUTPUT API-FILE [ABI-FILE]: prints one of the files made from an API table, or from it and another ABI of it. */
#include <stdio.h>
#include <string.h>

#include "lib/util.h"
#include "stubs/gen/abi.h"
#include "stubs/gen/api.h"

static const struct {
	const char *name;
	int (*generate)(const struct api *api, FILE *out, struct err *e);
} outputs[] = {
	{"entries", gen_entries},
	{"versions", gen_versions},
	{"info", gen_info},
	{"index", gen_index},
	{"calls", gen_calls},
	{"check", gen_check},
	{"names", gen_names},
};

static const struct {
	const char *name;
	int (*generate)(const struct api *api, const struct abi *abi, FILE *out, struct err *e);
} abi_outputs[] = {
	{"adapter", gen_adapter},
	{"narrowed", gen_narrowed},
	{"fortran", gen_fortran},
	{"constants", gen_constants},
	{"check-own", gen_check_own},
	{"check-theirs", gen_check_theirs},
};

static int report_failure(const struct err *e)
{
	fprintf(stderr, "gen: %s\n", e->msg);
	return 1;
}

static int print_for_abi(char **argv)
{
	struct err e = ERR_INIT;
	struct api api = {0};
	struct abi abi = {0};

	for (size_t i = 0; i < ARRAY_SIZE(abi_outputs); i++) {
		if (strcmp(abi_outputs[i].name, argv[1]))
			continue;
		if (api_read(&api, argv[2], &e) < 0 || abi_read(&abi, argv[3], &e) < 0 ||
			abi_outputs[i].generate(&api, &abi, stdout, &e) < 0)
			return report_failure(&e);
		return fflush(stdout) ? 1 : 0;
	}
	return 2;
}

int main(int argc, char **argv)
{
	struct err e = ERR_INIT;
	struct api api = {0};
	int r;

	for (size_t i = 0; argc == 3 && i < ARRAY_SIZE(outputs); i++) {
		if (strcmp(outputs[i].name, argv[1]))
			continue;
		if (api_read(&api, argv[2], &e) < 0 ||
			outputs[i].generate(&api, stdout, &e) < 0)
			return report_failure(&e);
		return fflush(stdout) ? 1 : 0;
	}
	if (argc == 4 && (r = print_for_abi(argv)) != 2)
		return r;
	fprintf(stderr,
		"usage: gen entries|versions|info|index|calls|check|names API-FILE,\n"
		"       gen adapter|narrowed|fortran|constants|check-own|check-theirs API-FILE "
		"ABI-FILE\n");
	return 2;
}
