/*
 * What both ABIs give values: OBJECT(TYPE, SYMBOL, SIZE, THEIRS, FORTRAN) for each predefined object, where the file
 * that includes it has defined that, and else CLASS_to_theirs() and CLASS_to_own() for each class of constants; and C
 * files that compile only when a header agrees.
 */
#include "stubs/gen/abi.h"

#include <string.h>

static void print_flags(const struct abi *abi, const char *class, bool to_own, FILE *out)
{
	fprintf(out, "static inline int %s_to_%s(int value)\n{\n\tint flags = 0;\n\n", class,
		to_own ? "own" : "theirs");
	for (size_t i = 0; i < abi->value_count; i++) {
		const struct abi_value *v = &abi->values[i];

		if (!strcmp(v->class, class))
			fprintf(out, "\tif (value & %d)\n\t\tflags |= %d;\n",
				to_own ? v->theirs : v->own, to_own ? v->own : v->theirs);
	}
	fputs("\treturn flags;\n}\n", out);
}

static void print_cases(const struct abi *abi, const char *class, bool to_own, FILE *out)
{
	fprintf(out, "static inline int %s_to_%s(int value)\n{\n\tswitch (value) {\n", class,
		to_own ? "own" : "theirs");
	for (size_t i = 0; i < abi->value_count; i++) {
		const struct abi_value *v = &abi->values[i];

		if (!strcmp(v->class, class))
			fprintf(out, "\tcase %d:\n\t\treturn %d;\n",
				to_own ? v->theirs : v->own, to_own ? v->own : v->theirs);
	}
	fputs("\t}\n\treturn value;\n}\n", out);
}

static bool is_first(const struct abi *abi, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (!strcmp(abi->values[i].class, abi->values[index].class))
			return false;
	return true;
}

int gen_constants(const struct api *api, const struct abi *abi, FILE *out, struct err *e)
{
	(void)api;
	(void)e;
	fputs("#ifdef OBJECT\n", out);
	for (size_t i = 0; i < abi->object_count; i++) {
		const struct abi_object *o = &abi->objects[i];

		fprintf(out, "OBJECT(%s, %s, %u, %#x, %d)\n", o->type, o->symbol, o->size,
			o->theirs, o->fortran);
	}
	fputs("#else\n", out);
	for (size_t i = 0; i < abi->value_count; i++)
		if (is_first(abi, i))
			for (int to_own = 0; to_own < 2; to_own++)
				(abi->values[i].flag ? print_flags : print_cases)(
					abi, abi->values[i].class, to_own, out);
	fputs("#endif\n", out);
	return 0;
}

static void check_values(const struct abi *abi, bool own, FILE *out)
{
	for (size_t i = 0; i < abi->value_count; i++) {
		const struct abi_value *v = &abi->values[i];

		if (own || strncmp(v->name, "OMPI_", 5))
			fprintf(out, "_Static_assert((int)(%s) == %d, \"%s\");\n", v->name,
				own ? v->own : v->theirs, v->name);
	}
}

int gen_check_own(const struct api *api, const struct abi *abi, FILE *out, struct err *e)
{
	(void)api;
	(void)e;
	check_values(abi, true, out);
	for (size_t i = 0; i < abi->size_count; i++)
		fprintf(out, "_Static_assert(sizeof(%s) == %u, \"%s\");\n", abi->sizes[i].type,
			abi->sizes[i].bytes, abi->sizes[i].type);
	for (size_t i = 0; i < abi->object_count; i++) {
		const struct abi_object *o = &abi->objects[i];

		if (*o->name != '-')
			fprintf(out,
				"#ifdef %s\nstatic %s is_%zu(void) { return %s; }\n"
				"static %s named_%zu(void) { return (%s)(void *)&%s; "
				"}\n#endif\n",
				o->name, o->type, i, o->name, o->type, i, o->type, o->symbol);
	}
	return 0;
}

int gen_check_theirs(const struct api *api, const struct abi *abi, FILE *out, struct err *e)
{
	(void)api;
	(void)e;
	check_values(abi, false, out);
	for (size_t i = 0; i < abi->object_count; i++) {
		const struct abi_object *o = &abi->objects[i];

		/* What is not predefined there has a number of ours. */
		if (*o->name != '-' && (o->theirs & 0xff) < 0xe0)
			fprintf(out,
				"#ifdef %s\n_Static_assert((unsigned)(unsigned long)(%s) == "
				"%#x, "
				"\"%s\");\n#endif\n",
				o->name, o->name, o->theirs, o->name);
	}
	return 0;
}
