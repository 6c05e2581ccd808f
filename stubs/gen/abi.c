/* The parser of stubs/api/NAME.abi. */
#include "stubs/gen/abi.h"

#include <errno.h>
#include <string.h>

#include "lib/util.h"

static const char *const list_names[] = {
	[ABI_CALLS] = "calls",
	[ABI_BY_HAND] = "by-hand",
	[ABI_RENAMED] = "renamed",
	[ABI_EXCHANGED] = "exchanged",
	[ABI_PARAMETERS] = "parameters",
	[ABI_POINTERS] = "pointers",
	[ABI_NUMBERS] = "numbers",
	[ABI_FORTRAN_BY_HAND] = "fortran-by-hand",
	[ABI_C_ONLY] = "c-only",
	[ABI_INDEXES] = "indexes",
};

struct parser {
	struct buf lists, values, objects, sizes,
		words; /* words: of the list that is being read */
};

/* The words that have been read are those of the last list. */
static void end_list(struct parser *p)
{
	size_t count = buf_count(&p->lists, struct abi_list);
	struct abi_list *last;

	if (!count)
		return;
	last = buf_at(&p->lists, struct abi_list, count - 1);
	last->words = p->words.data;
	last->count = buf_count(&p->words, char *);
}

static void add_words(struct parser *p, char *text)
{
	for (char *word; (word = strsep(&text, " \t\n"));) {
		char *copy = xstrdup(word);

		if (!*word)
			continue;
		buf_push(&p->words, char *, &copy);
	}
}

static bool begin_list(struct parser *p, const char *line)
{
	char name[32] = "", of[64] = "";
	struct abi_list list = {0};

	sscanf(line, "%31s %63s", name, of);
	for (size_t i = 0; i < ABI_LISTS; i++)
		if (!strcmp(name, list_names[i])) {
			end_list(p);
			p->words = (struct buf){0};
			list.kind = i;
			list.of = xstrdup(of);
			buf_push(&p->lists, struct abi_list, &list);
			return true;
		}
	return false;
}

static bool parse_value(struct parser *p, const char *line)
{
	struct abi_value v = {0};
	char word[8] = "";
	long theirs, own;

	if (sscanf(line, "%7s %31s %li %li %63s", word, v.class, &theirs, &own, v.name) != 5 ||
		(strcmp(word, "value") && strcmp(word, "flag")))
		return false;
	v.theirs = (int)theirs;
	v.own = (int)own;
	v.flag = !strcmp(word, "flag");
	buf_push(&p->values, struct abi_value, &v);
	return true;
}

static bool parse_line(struct parser *p, char *line)
{
	struct abi_object o = {0};
	struct abi_size size = {0};

	if (*line == '\t') {
		add_words(p, line);
		return true;
	}
	if (*line == '#' || *line == '\n' || parse_value(p, line))
		return true;
	if (sscanf(line, "size %31s %u", size.type, &size.bytes) == 2) {
		buf_push(&p->sizes, struct abi_size, &size);
		return true;
	}
	if (sscanf(line, "object %31s %63s %u %x %d %63s", o.type, o.symbol, &o.size, &o.theirs,
		    &o.fortran, o.name) == 6) {
		buf_push(&p->objects, struct abi_object, &o);
		return true;
	}
	return begin_list(p, line);
}

int abi_read(struct abi *abi, const char *path, struct err *e)
{
	cleanup_file FILE *f = fopen(path, "re");
	cleanup_free char *line = NULL;
	struct parser p = {0};
	size_t size = 0;
	unsigned number = 0;

	if (!f)
		return err_set(e, errno, "opening %s", path);
	while (getline(&line, &size, f) >= 0) {
		number++;
		if (!parse_line(&p, line))
			return err_set(e, 0, "%s:%u: not understood: %s", path, number, line);
	}
	end_list(&p);
	abi->lists = p.lists.data;
	abi->list_count = buf_count(&p.lists, struct abi_list);
	abi->values = p.values.data;
	abi->value_count = buf_count(&p.values, struct abi_value);
	abi->objects = p.objects.data;
	abi->object_count = buf_count(&p.objects, struct abi_object);
	abi->sizes = p.sizes.data;
	abi->size_count = buf_count(&p.sizes, struct abi_size);
	return 0;
}

static bool has_word(const struct abi_list *list, const char *word)
{
	for (size_t i = 0; i < list->count; i++)
		if (!strcmp(list->words[i], word))
			return true;
	return false;
}

const struct abi_list *abi_find(
	const struct abi *abi, enum abi_list_kind kind, const char *word)
{
	for (size_t i = 0; i < abi->list_count; i++)
		if (abi->lists[i].kind == kind && has_word(&abi->lists[i], word))
			return &abi->lists[i];
	return NULL;
}

const struct abi_list *abi_list_of(
	const struct abi *abi, enum abi_list_kind kind, const char *of)
{
	for (size_t i = 0; i < abi->list_count; i++)
		if (abi->lists[i].kind == kind && !strcmp(abi->lists[i].of, of))
			return &abi->lists[i];
	return NULL;
}
