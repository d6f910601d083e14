/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A name is read as a tree: a part has a name and template arguments, which are parts again. The
 * part that says what is computed (a lambda, a functor, an operation, a class within a template
 * that is called "kernel" only) is searched in it, and the way to it is printed from the inside.
 */
#include "model/kernel_name.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	DEEPEST = 24, /* nested parts */
	WRAPPERS = 8, /* of one kernel that are printed */
	LAMBDAS = 4,  /* within each other */
};

struct span {
	const char *at, *end;
};

struct part {
	struct span name;             /* without namespaces and arguments */
	struct span arguments;        /* what is between < and >; empty: none */
	struct span lambda;           /* its parameters; at NULL: it is no lambda */
	struct span numbers[LAMBDAS]; /* of it, and of those around it in the same function */
	int number_count;
	struct span whole;
};

/* ---- spans ---- */

static bool
is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || (c & 0x80);
}

static size_t
length_of(struct span s)
{
	return (size_t)(s.end - s.at);
}

static struct span
trim(struct span s)
{
	while (s.at < s.end && *s.at == ' ')
		s.at++;
	while (s.at < s.end && s.end[-1] == ' ')
		s.end--;
	return s;
}

static bool
span_begins(struct span s, const char *text)
{
	size_t length = strlen(text);

	return length_of(s) >= length && !memcmp(s.at, text, length);
}

static bool
span_ends(struct span s, const char *text)
{
	size_t length = strlen(text);

	return length_of(s) >= length && !memcmp(s.end - length, text, length);
}

static bool
span_is(struct span s, const char *text)
{
	return length_of(s) == strlen(text) && span_begins(s, text);
}

static bool
span_has(struct span s, const char *text)
{
	return memmem(s.at, length_of(s), text, strlen(text)) != NULL;
}

/* Behind the word "operator" and its sign at AT; AT: there is none. "<" and "(" of a sign open
 * nothing. */
static const char *
after_operator(const char *at, const char *begin, const char *end)
{
	static const char *const signs[] = { "()", "<<", ">>", "<=", ">=", "->", "[]", "<", ">" };

	if (end - at < 9 || memcmp(at, "operator", 8) || (at > begin && is_word(at[-1])))
		return at;
	for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
		size_t length = strlen(signs[i]);
		if ((size_t)(end - at - 8) >= length && !memcmp(at + 8, signs[i], length))
			return at + 8 + length;
	}
	return at;
}

/*
 * The next place from AT on, outside of all brackets, where STOP says so; END: there is none. NULL:
 * the brackets do not match, or are too deep.
 */
static const char *
scan(const char *at, const char *end, bool (*stop)(const char *at, const char *end))
{
	char open[DEEPEST * 4];
	size_t depth = 0;
	const char *begin = at;

	while (at < end) {
		const char *after = after_operator(at, begin, end);
		if (after > at) {
			at = after;
			continue;
		}
		if (!depth && stop && stop(at, end))
			return at;
		if (strchr("<({[", *at)) {
			if (depth == sizeof open)
				return NULL;
			open[depth++] = *at;
		} else if (*at == '>' && at > begin && at[-1] == '-') {
			/* "->" */
		} else if (strchr(">)}]", *at)) {
			static const char pairs[] = "<>(){}[]";
			if (!depth || strchr(pairs, open[depth - 1])[1] != *at)
				return NULL;
			depth--;
		}
		at++;
	}
	return depth ? NULL : end;
}

static bool
at_colons(const char *at, const char *end)
{
	return end - at > 1 && at[0] == ':' && at[1] == ':';
}

static bool
at_comma(const char *at, const char *end)
{
	(void)end;
	return *at == ',';
}

static bool
at_less(const char *at, const char *end)
{
	(void)end;
	return *at == '<';
}

static bool
at_parenthesis(const char *at, const char *end)
{
	(void)end;
	return *at == '(';
}

static bool
at_space(const char *at, const char *end)
{
	(void)end;
	return *at == ' ';
}

/* ---- parts ---- */

/* The parenthesis that closes the one at OPEN; END: there is none. */
static const char *
closing(const char *open, const char *end)
{
	int depth = 0;

	for (; open < end; open++) {
		depth += (*open == '(') - (*open == ')');
		if (!depth)
			return open;
	}
	return end;
}

/* "{lambda(float)#1}", "[lambda(long) (instance 1)]" or "'lambda'(float)": its parameters and its
 * number. False: COMPONENT is none. */
static bool
read_lambda(struct span component, struct span *parameters, struct span *number)
{
	const char *open, *close;

	if (length_of(component) < 7 || !strchr("{['", *component.at) ||
	    memcmp(component.at + 1, "lambda", 6))
		return false;
	open = memchr(component.at, '(', length_of(component));
	close = open ? closing(open, component.end) : component.end;
	*parameters = (struct span){ component.at, component.at };
	if (close < component.end)
		*parameters = (struct span){ open + 1, close };
	while (close < component.end && !isdigit((unsigned char)*close))
		close++;
	*number = (struct span){ close, close };
	while (number->end < component.end && isdigit((unsigned char)*number->end))
		number->end++;
	return true;
}

/* Cuts what does not name: "(int)4" → "4", "const T&" → "T". */
static struct span
strip_type(struct span s)
{
	bool again = true;

	s = trim(s);
	while (again) {
		struct span before = s;

		if (span_begins(s, "void ") && length_of(s) > 5)
			s.at += 5;
		if (span_begins(s, "const "))
			s.at += 6;
		if (span_ends(s, " const"))
			s.end -= 6;
		if (s.at < s.end && s.end[-1] == '&')
			s.end--;
		s = trim(s);
		again = before.at != s.at || before.end != s.end;
	}
	if (s.at < s.end && *s.at == '(' && !span_begins(s, "(anonymous namespace)")) {
		const char *close = memchr(s.at, ')', length_of(s));
		if (close && close + 1 < s.end && (is_word(close[1]) || close[1] == '-'))
			s.at = close + 1;
	}
	return s;
}

/* The name of COMPONENT, which has no "::" outside of brackets, and its template arguments. */
static bool
read_component(struct span component, struct part *part)
{
	const char *less = scan(component.at, component.end, at_less);
	const char *open = scan(component.at, component.end, at_parenthesis);
	const char *close;

	if (!less || !open)
		return false;
	part->arguments = (struct span){ component.end, component.end };
	part->name = trim((struct span){ component.at, open < less ? open : less });
	if (less >= open)
		return true;
	for (close = open < component.end ? open : component.end; close > less && close[-1] != '>';)
		close--;
	if (close <= less + 1)
		return false;
	part->arguments = trim((struct span){ less + 1, close - 1 });
	return true;
}

static bool
is_nameless(struct span component)
{
	return span_begins(component, "operator") || span_is(component, "(anonymous namespace)") ||
	       span_is(component, "<unnamed>") || span_is(component, "Params") ||
	       span_is(component, "type") || span_is(component, "value_type");
}

/* Reads one type or function. False: it cannot be read. */
static bool
read_part(struct span text, struct part *part)
{
	struct span component, named = { NULL, NULL };
	const char *at, *end;

	*part = (struct part){ .whole = text };
	text = strip_type(text);
	part->lambda.at = NULL;
	for (at = text.at; at < text.end; at = end + 2) {
		struct span parameters, number;

		end = scan(at, text.end, at_colons);
		if (!end)
			return false;
		component = trim((struct span){ at, end });
		if (read_lambda(component, &parameters, &number)) {
			part->lambda = parameters;
			if (part->number_count < LAMBDAS)
				part->numbers[part->number_count++] = number;
		} else if (!is_nameless(component)) { /* one that follows lies within them */
			named = component;
			part->lambda.at = NULL;
			part->number_count = 0;
		}
		if (end == text.end)
			break;
	}
	part->whole = text;
	return named.at && named.at < named.end && read_component(named, part) &&
	       part->name.at < part->name.end;
}

/* The next argument of a list; false: there is none. */
static bool
next_argument(struct span *list, struct span *argument)
{
	const char *end;

	if (list->at >= list->end)
		return false;
	end = scan(list->at, list->end, at_comma);
	if (!end)
		end = list->end;
	*argument = trim((struct span){ list->at, end });
	list->at = end < list->end ? end + 1 : end;
	return true;
}

/* ---- what is computed ---- */

/* Is NAME made of such words only, so that it says nothing? */
static bool
is_general(struct span name)
{
	static const char *const words[] = { "kernel",   "device", "global", "agent",   "entry",
		                             "launch",   "impl",   "main",   "generic", "function",
		                             "cuda",     "hip",    "gpu",    "wrapper", "static",
		                             "parallel", "local",  "memory" };

	for (const char *at = name.at; at < name.end;) {
		size_t i, found = 0;

		if (!isalpha((unsigned char)*at)) {
			at++;
			continue;
		}
		for (i = 0; !found && i < sizeof words / sizeof *words; i++)
			if ((size_t)(name.end - at) >= strlen(words[i]) &&
			    !strncasecmp(at, words[i], strlen(words[i])))
				found = strlen(words[i]);
		if (!found)
			return false;
		at += found;
	}
	return true;
}

/* A type of numbers, or a number. */
static bool
is_plain(const struct part *part)
{
	static const char *const types[] = {
		"bool",     "char",     "short",   "int",    "long",    "float",  "double",
		"unsigned", "signed",   "void",    "size_t", "half",    "Half",   "__half",
		"BFloat16", "bfloat16", "complex", "auto",   "true",    "false",  "nullptr",
		"tfloat32", "tf32",     "bfloat",  "half_t", "float_e", "Float8", "__nv_",
		"__hip_",   "__bf16",   "_Float",  "int8",   "int16",   "int32",  "int64",
		"uint",     "std",
	};
	struct span name = part->name;

	if (isdigit((unsigned char)*name.at) || *name.at == '-')
		return true;
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (span_begins(name, types[i]))
			return true;
	return false;
}

static bool
tells(const struct part *part)
{
	struct span name = part->name;

	return part->lambda.at || span_has(name, "unctor") || span_ends(name, "Op") ||
	       span_ends(name, "_op") || span_ends(name, "Ops") || span_begins(name, "cutlass_") ||
	       (part->arguments.at < part->arguments.end &&
	        (span_has(name, "Gemm") || span_has(name, "Conv")));
}

struct way {
	struct part parts[WRAPPERS]; /* from the outside */
	struct span taken[WRAPPERS]; /* the argument that the next one is */
	int count;
};

/* Goes on to the part within the last one that says what is computed. False: there is none, and
 * WAY is as before. */
static bool
go_inside(struct way *way, int depth)
{
	struct part *last = &way->parts[way->count - 1];
	bool general = is_general(last->name) && !last->lambda.at;

	if (depth == DEEPEST || way->count == WRAPPERS)
		return false;
	for (int pass = 0; pass < 1 + general; pass++) {
		struct span list = last->arguments, argument;

		while (next_argument(&list, &argument)) {
			struct part *inner = &way->parts[way->count];
			int count = way->count;

			if (!read_part(argument, inner))
				continue;
			way->taken[count - 1] = argument;
			way->count++;
			if (pass ? !is_plain(inner) : tells(inner)) {
				go_inside(way, depth + 1);
				return true;
			}
			if (!pass && go_inside(way, depth + 1))
				return true;
			way->count = count;
		}
	}
	return false;
}

/* ---- printing ---- */

static void print_part(const struct part *part, struct span without, int depth, FILE *out);

static void
print_span(struct span s, FILE *out)
{
	fwrite(s.at, 1, length_of(s), out);
}

/* One argument: "c10::BFloat16" → "BFloat16", "4ul" → "4". */
static void
print_argument(struct span argument, int depth, FILE *out)
{
	struct part part;
	const char *star;

	if (depth < DEEPEST && read_part(argument, &part)) {
		struct span name = part.name;

		if (isdigit((unsigned char)*name.at))
			while (name.end - 1 > name.at && strchr("ul", name.end[-1]))
				name.end--;
		part.name = name;
		/* "unsigned int" and "char const*" are one name. */
		print_part(&part, (struct span){ NULL, NULL }, depth + 1, out);
		star = part.whole.end;
		while (star > part.whole.at && star[-1] == '*' && part.name.end < star)
			star--;
		print_span((struct span){ star, part.whole.end }, out);
		return;
	}
	print_span(argument, out);
}

/* PART without the argument WITHOUT. */
static void
print_part(const struct part *part, struct span without, int depth, FILE *out)
{
	struct span list = part->arguments, argument;
	bool any = false;

	print_span(part->name, out);
	while (next_argument(&list, &argument)) {
		if (argument.at == without.at)
			continue;
		fputs(any ? ", " : "<", out);
		any = true;
		print_argument(argument, depth, out);
	}
	fputs(any ? ">" : "", out);
	if (!part->lambda.at)
		return;
	fputc('(', out);
	list = part->lambda;
	for (any = false; next_argument(&list, &argument); any = true) {
		fputs(any ? ", " : "", out);
		print_argument(argument, depth, out);
	}
	fputc(')', out);
	/* Lambdas of one function differ in their numbers. */
	for (int i = 0; i < part->number_count; i++) {
		if (part->number_count == 1 && span_is(part->numbers[i], "1"))
			break;
		fputc(i ? '.' : '#', out);
		print_span(part->numbers[i], out);
	}
}

/* Is NAME that of a function of C++ with arguments? */
static bool
is_readable(const char *name, struct span *function)
{
	const char *end = name + strlen(name), *at, *space, *parameters;

	*function = (struct span){ name, end };
	if (!strpbrk(name, "<(") || !(at = scan(name, end, NULL)) || at != end)
		return false;
	parameters = scan(name, end, at_parenthesis);
	/* What a function returns comes before its name: "void", or a template's type. */
	for (at = name; (space = scan(at, parameters, at_space)) && space < parameters;
	     at = space + 1) {
		if (!memchr(name, '<', (size_t)(space - name)) && strncmp(name, "void ", 5))
			return false; /* words: it is a text, not a name */
		function->at = space + 1;
	}
	return function->at < end;
}

char *
plumb_kernel_name_compact(const char *name)
{
	struct way way = { .count = 1 };
	struct span function;
	char *text = NULL;
	size_t bytes;
	FILE *out;

	if (!is_readable(name, &function) || !read_part(function, &way.parts[0]))
		return strdup(name);
	out = open_memstream(&text, &bytes);
	if (!out)
		return NULL;
	go_inside(&way, 0);
	print_part(&way.parts[way.count - 1], (struct span){ NULL, NULL }, 0, out);
	for (int i = way.count - 1; i-- > 0;) {
		fputs(i == way.count - 2 ? " (" : ", ", out);
		print_part(&way.parts[i], way.taken[i], 0, out);
	}
	fputs(way.count > 1 ? ")" : "", out);
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}
