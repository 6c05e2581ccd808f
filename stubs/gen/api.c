/* The parser of stubs/api/NAME.api. */
#include "stubs/gen/api.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "lib/util.h"

struct parser {
	const char *path;
	unsigned line;
	struct buf types, calls;
	struct api_call *call; /* whose parameters may follow; the plain one of a pair */
	bool has_variant;
	char *value;                       /* name of the parameter that is replaced, or NULL */
	char *result, *version, *profiled; /* of struct api */
	bool notes, counts;
	struct err *e;
};

static const char *const kind_names[] = {
	[API_VOID] = "void",
	[API_INT] = "int",
	[API_UINT] = "uint",
	[API_FLOAT] = "float",
	[API_ENUM] = "enum",
	[API_DEVICE] = "device",
	[API_DEVICEPTR] = "deviceptr",
	[API_HANDLE] = "handle",
	[API_STRUCT] = "struct",
	[API_CALLBACK] = "callback",
	[API_JIT] = "jit",
};

static const char *const holding_names[] = {
	[API_VIRTUAL] = "virtual",
	[API_REAL] = "real",
	[API_LOST] = "lost",
};

static const char *const class_names[] = {
	[API_PURE] = "pure",
	[API_CREATE] = "create",
	[API_DESTROY] = "destroy",
	[API_STATE] = "state",
	[API_THREAD] = "thread",
	[API_LAUNCH] = "launch",
	[API_COPY] = "copy",
	[API_SYNC] = "sync",
	[API_MESSAGE] = "message",
	[API_COLLECTIVE] = "collective",
	[API_COMPLETE] = "complete",
	[API_WINDOW] = "window",
	[API_FILE] = "file",
	[API_TOOL] = "tool",
	[API_UNSAVED] = "unsaved",
	[API_MANUAL] = "manual",
	[API_UNSUPPORTED] = "unsupported",
	[API_DATA] = "data",
};

static const char *const length_names[] = {
	[API_LENGTH_UNKNOWN] = "?",
	[API_IMAGE] = "image",
	[API_RANKS] = "ranks",
	[API_MEMBERS] = "members",
	[API_SOURCES] = "sources",
	[API_DESTINATIONS] = "destinations",
};

static const char *const direction_names[] = {
	[API_IN] = "in",
	[API_OUT] = "out",
	[API_INOUT] = "inout",
	[API_STRING] = "string",
	[API_ADDR] = "addr",
};

const char *api_class_name(enum api_class class)
{
	return class_names[class];
}

unsigned api_callbacks(const struct api_call *call)
{
	unsigned callbacks = 0;

	for (unsigned i = 0; i < call->param_count; i++)
		if (call->params[i].type->kind == API_CALLBACK && !call->params[i].stars)
			callbacks |= 1u << i;
	return callbacks;
}

const char *api_communicator(const struct api_call *call)
{
	for (unsigned i = 0; i < call->param_count; i++)
		if (!strcmp(call->params[i].type->name, "MPI_Comm") && !call->params[i].stars)
			return call->params[i].name;
	return "NULL";
}

const char *api_buffer_before(const struct api_call *call, unsigned index)
{
	while (index-- > 0)
		if (call->params[index].type->kind == API_VOID)
			return call->params[index].name;
	return "NULL";
}

bool api_has_virtual(const struct api *api)
{
	for (size_t i = 0; i < api->type_count; i++)
		if (api->types[i].holding == API_VIRTUAL)
			return true;
	return false;
}

struct api_place api_place(const struct api_call *call, unsigned index)
{
	unsigned registers = 0, stack = 0, floats = 0;

	for (unsigned i = 0;; i++) {
		const struct api_param *p = &call->params[i];
		bool is_float = !p->stars && p->type->kind == API_FLOAT;
		unsigned words = 1;

		if (!p->stars && p->type->kind == API_STRUCT)
			words = (p->type->size + 7) / 8;
		if (is_float && i == index)
			return (struct api_place){API_FLOAT_REGISTER, floats};
		if (is_float) {
			floats++;
		} else if (words > 2 || registers + words > 6) {
			if (i == index)
				return (struct api_place){API_STACK, stack};
			stack += words;
		} else {
			if (i == index)
				return (struct api_place){API_REGISTER, registers};
			registers += words;
		}
	}
}

static int name_index(const char *const *names, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (names[i] && !strcmp(names[i], name))
			return i;
	return -1;
}

static int parse_failed(const struct parser *p, const char *what, const char *word)
{
	return err_set(p->e, 0, "%s:%u: %s \"%s\"", p->path, p->line, what, word);
}

static char *trim(char *s)
{
	char *end;

	while (isspace((unsigned char)*s))
		s++;
	end = s + strlen(s);
	while (end > s && isspace((unsigned char)end[-1]))
		*--end = 0;
	return s;
}

/* type C-TYPE = KIND SIZE [HANDLE-NAME [HOLDING]] */
static int parse_type(struct parser *p, char *text)
{
	struct api_type t = {0};
	char kind[32], handle[64] = "", holding[16] = "";
	char *equals = strchr(text, '=');
	int k;

	if (!equals)
		return parse_failed(p, "no \"=\" in type", text);
	*equals = 0;
	if (sscanf(equals + 1, "%31s %u %63s %15s", kind, &t.size, handle, holding) < 2)
		return parse_failed(p, "no kind and size of type", text);
	k = name_index(kind_names, ARRAY_SIZE(kind_names), kind);
	if (k < 0)
		return parse_failed(p, "unknown kind", kind);
	t.kind = k;
	t.name = xstrdup(trim(text));
	t.handle = *handle ? xstrdup(handle) : NULL;
	if (*holding) {
		k = name_index(holding_names, ARRAY_SIZE(holding_names), holding);
		if (k < 0)
			return parse_failed(p, "unknown word", holding);
		t.holding = k;
	}
	if ((t.kind == API_HANDLE) != !!t.handle)
		return parse_failed(
			p, "a handle, and nothing else, says what it stands for:", t.name);
	buf_push(&p->types, struct api_type, &t);
	return 0;
}

static const struct api_type *find_type(const struct parser *p, const char *name)
{
	for (size_t i = 0; i < buf_count(&p->types, struct api_type); i++) {
		const struct api_type *t = buf_at(&p->types, struct api_type, i);

		if (!strcmp(t->name, name))
			return t;
	}
	return NULL;
}

/* What stands in brackets; parameters it names may come later, so they are looked up when the
 * row is whole (resolve_lengths). */
static char *cut_length(char *text)
{
	char *open = strchr(text, '[');
	char *close = open ? strchr(open, ']') : NULL;

	if (!close)
		return NULL;
	*open = *close = 0;
	return open + 1;
}

/* The type of a parameter that is declared as @text, with @stars that are not part of its name:
 * "MPI_User_function *" may be a type itself. */
static const struct api_type *declared_type(const struct parser *p, char *text, unsigned *stars)
{
	const struct api_type *whole;

	if (!strncmp(text, "const ", 6))
		text += 6;
	whole = find_type(p, trim(text));
	*stars = 0;
	for (const char *c = text; *c && !whole; c++)
		*stars += *c == '*';
	text[strcspn(text, "*")] = 0;
	return whole ? whole : find_type(p, trim(text));
}

/* [DIRECTION] [const] TYPE [*...]NAME[LENGTH], or ... */
static int parse_param(struct parser *p, char *text, char **length)
{
	struct api_call *call = p->call;
	struct api_param *param;
	char *word, *name;
	int direction;

	if (call->param_count == API_MAX_PARAMS)
		return parse_failed(p, "too many parameters before", text);
	param = &call->params[call->param_count++];
	*length = cut_length(text);
	text = trim(text);
	if (!strcmp(text, "...")) {
		call->param_count--;
		call->variadic = true;
		return 0;
	}

	word = xstrdup(text);
	word[strcspn(word, " ")] = 0;
	direction = name_index(direction_names, ARRAY_SIZE(direction_names), word);
	if (direction > 0) {
		param->direction = direction;
		text = trim(text + strlen(word));
	}
	name = text + strlen(text);
	while (name > text && (isalnum((unsigned char)name[-1]) || name[-1] == '_'))
		name--;
	param->name = xstrdup(name);
	*name = 0;
	param->declared = xstrdup(trim(text));
	param->type = declared_type(p, text, &param->stars);
	if (!param->type)
		return parse_failed(p, "unknown type", text);
	if (!param->stars != (param->direction == API_VALUE))
		return parse_failed(
			p, "a pointer, and nothing else, has a direction:", param->name);
	return 0;
}

static int find_param(const struct api_call *call, const char *name)
{
	for (unsigned i = 0; i < call->param_count; i++)
		if (!strcmp(call->params[i].name, name))
			return i;
	return -1;
}

/* COUNT:DATATYPE, both parameters */
static int resolve_elements(
	struct parser *p, struct api_param *param, char *text, char *element)
{
	int count, datatype;

	*element++ = 0;
	count = find_param(p->call, text);
	datatype = find_param(p->call, element);
	if (count < 0 || datatype < 0)
		return parse_failed(p, "no parameter is called", count < 0 ? text : element);
	param->length_kind = API_ELEMENTS;
	param->length = count;
	param->element = datatype;
	return 0;
}

static int resolve_length(struct parser *p, struct api_param *param, char *text)
{
	char *element;
	int index;

	if (!text)
		return 0;
	index = name_index(length_names, ARRAY_SIZE(length_names), text);
	if (index >= 0) {
		param->length_kind = index;
		return 0;
	}
	if (isdigit((unsigned char)*text)) {
		param->length_kind = API_CONSTANT;
		param->length = atoi(text);
		return 0;
	}
	element = strchr(text, ':');
	if (element)
		return resolve_elements(p, param, text, element);
	param->length_kind = *text == '*' ? API_DEREFERENCED : API_PARAMETER;
	index = find_param(p->call, text + (*text == '*'));
	if (index < 0)
		return parse_failed(p, "no parameter is called", text);
	if (p->call->params[index].stars != (*text == '*'))
		return parse_failed(p, "neither a value nor a pointer to one:", text);
	param->length = index;
	return 0;
}

/* All parameters of a row, joined to one line. */
static int parse_params(struct parser *p, char *text)
{
	char *lengths[API_MAX_PARAMS] = {0};
	unsigned n = 0;
	char *rest = text, *one;

	while ((one = strsep(&rest, ","))) {
		if (n < API_MAX_PARAMS && parse_param(p, one, &lengths[n++]) < 0)
			return -1;
	}
	for (unsigned i = 0; i < p->call->param_count; i++)
		if (resolve_length(p, &p->call->params[i], lengths[i]) < 0)
			return -1;
	if (p->value) {
		p->call->value = find_param(p->call, p->value);
		if (p->call->value < 0)
			return parse_failed(p, "no parameter is called", p->value);
	}
	if (p->has_variant) {
		p->call[1].value = p->call->value;
		memcpy(p->call[1].params, p->call->params, sizeof(p->call->params));
		p->call[1].param_count = p->call->param_count;
	}
	return 0;
}

static int parse_attribute(
	struct parser *p, struct api_call *call, struct api_call *variant, const char *word)
{
	unsigned version;

	if (sscanf(word, "since=%u", &version) == 1) {
		call->since = version;
	} else if (sscanf(word, "ptsz=%u", &version) == 1 ||
		   sscanf(word, "ptds=%u", &version) == 1) {
		variant->name = xasprintf("%s_%.4s", call->name, word);
		variant->since = version;
		variant->per_thread = true;
	} else if (!strcmp(word, "body")) {
		call->body = true;
	} else if (!strcmp(word, "inner_body")) {
		call->inner_body = true;
	} else if (!strcmp(word, "open")) {
		call->open = true;
	} else if (!strcmp(word, "answered")) {
		call->body = call->answered = true;
	} else if (!strcmp(word, "on=context")) {
		call->on_context = true;
	} else if (!strcmp(word, "leaves")) {
		call->leaves = true;
	} else if (!strcmp(word, "counted")) {
		call->counted = true;
	} else if (!strcmp(word, "again")) {
		call->again = true;
	} else if (!strcmp(word, "shared")) {
		call->shared = true;
	} else if (!strcmp(word, "saved")) {
		call->saved = true;
	} else if (!strcmp(word, "loses")) {
		call->loses = true;
	} else if (!strcmp(word, "flushes")) {
		call->flushes = true;
	} else if (!strcmp(word, "internal")) {
		call->internal = true;
	} else if (!strcmp(word, "unchecked")) {
		call->unchecked = true;
	} else if (!strncmp(word, "returns=", 8)) {
		call->result = find_type(p, word + 8);
		if (!call->result)
			return parse_failed(p, "unknown type", word + 8);
	} else if (!strncmp(word, "value=", 6)) {
		p->value = xstrdup(word + 6);
	} else {
		return parse_failed(p, "unknown attribute", word);
	}
	return 0;
}

/* cuFoo_v2 is asked for as cuFoo. */
static char *proc_name(const char *name)
{
	char *proc = xstrdup(name);
	char *v = strrchr(proc, '_');

	if (v && v[1] == 'v' && isdigit((unsigned char)v[2]))
		*v = 0;
	return proc;
}

/* NAME CLASS ATTRIBUTE... */
static int parse_call(struct parser *p, char *text)
{
	struct api_call call = {.value = -1}, variant = {.value = -1};
	char *rest = text, *word;
	int class;

	call.name = xstrdup(strsep(&rest, " "));
	call.proc = proc_name(call.name);
	word = strsep(&rest, " ");
	class = word ? name_index(class_names, ARRAY_SIZE(class_names), word) : -1;
	if (class < 0)
		return parse_failed(p, "no known class follows", call.name);
	call.class = class;
	p->value = NULL;
	while ((word = strsep(&rest, " ")))
		if (parse_attribute(p, &call, &variant, word) < 0)
			return -1;
	buf_push(&p->calls, struct api_call, &call);
	p->has_variant = variant.name;
	if (p->has_variant) {
		variant.proc = call.proc;
		variant.class = call.class;
		variant.body = call.body;
		variant.inner_body = call.inner_body;
		variant.answered = call.answered;
		variant.on_context = call.on_context;
		variant.loses = call.loses;
		variant.flushes = call.flushes;
		buf_push(&p->calls, struct api_call, &variant);
	}
	p->call = buf_at(&p->calls, struct api_call,
		buf_count(&p->calls, struct api_call) - 1 - p->has_variant);
	return 0;
}

/* table WORD=TEXT: what is said of all rows */
static int parse_table(struct parser *p, const char *text)
{
	if (!strncmp(text, "result=", 7))
		p->result = xstrdup(text + 7);
	else if (!strncmp(text, "version=", 8))
		p->version = xstrdup(text + 8);
	else if (!strncmp(text, "profiled=", 9))
		p->profiled = xstrdup(text + 9);
	else if (!strcmp(text, "notes=called"))
		p->notes = true;
	else if (!strcmp(text, "counts=collective"))
		p->counts = true;
	else
		return parse_failed(p, "nothing can be said of all rows by", text);
	return 0;
}

/* One row: its head and, joined to it, the lines that begin with a tab. */
static int parse_row(struct parser *p, char *head, char *params)
{
	if (!strncmp(head, "type ", 5))
		return parse_type(p, head + 5);
	if (!strncmp(head, "table ", 6))
		return parse_table(p, head + 6);
	if (parse_call(p, head) < 0)
		return -1;
	return *params ? parse_params(p, params) : 0;
}

static int parse_lines(struct parser *p, FILE *f)
{
	cleanup_free char *line = NULL;
	cleanup_free char *head = NULL;
	struct buf params = {0};
	size_t size = 0;
	unsigned number = 0;
	bool more = true;
	int ret = 0;

	while (more && !ret) {
		more = getline(&line, &size, f) >= 0;
		number++;
		if (more && *line == '\t') {
			buf_printf(&params, " %s", trim(line));
			continue;
		}
		if (head) {
			buf_add(&params, "", 1);
			ret = parse_row(p, head, trim(params.data));
			params.len = 0;
			free(head);
			head = NULL;
		}
		if (more && *line != '#' && *trim(line)) {
			head = xstrdup(trim(line));
			p->line = number;
		}
	}
	buf_free(&params);
	return ret;
}

int api_read(struct api *api, const char *path, struct err *e)
{
	struct parser p = {.path = path, .e = e};
	cleanup_file FILE *f = fopen(path, "re");
	const char *slash = strrchr(path, '/');

	if (!f)
		return err_set(e, errno, "opening %s", path);
	if (parse_lines(&p, f) < 0)
		return -1;
	api->library = xstrdup(slash ? slash + 1 : path);
	api->library[strcspn(api->library, ".")] = 0;
	api->result = p.result;
	api->version = p.version;
	api->profiled = p.profiled;
	api->notes = p.notes;
	api->counts = p.counts;
	api->types = p.types.data;
	api->type_count = buf_count(&p.types, struct api_type);
	api->calls = p.calls.data;
	api->call_count = buf_count(&p.calls, struct api_call);
	return 0;
}
