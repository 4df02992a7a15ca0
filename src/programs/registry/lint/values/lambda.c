#include "programs/registry/lint/values/lambda.h"

#include <ctype.h>
#include <string.h>

#include "programs/registry/lint/values/names.h"

enum { HEADER_MAX = 600 };

/* Languages in which a function may be one expression. */
#define LANGUAGES                                                                                  \
    (HF__LANG_JS | HF__LANG_PYTHON | HF__LANG_KOTLIN | HF__LANG_CSHARP | HF__LANG_ELIXIR |         \
     HF__LANG_RUBY)

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

struct cursor {
    const hf__unit *unit;
    size_t at;
    size_t limit;
};

static void skip_space(struct cursor *in)
{
    while (in->at < in->limit && isspace((unsigned char)in->unit->text[in->at]))
        in->at++;
}

static bool take(struct cursor *in, const char *text)
{
    size_t size = strlen(text);

    skip_space(in);
    if (in->limit - in->at < size || memcmp(in->unit->text + in->at, text, size) != 0)
        return false;
    in->at += size;
    return true;
}

/* The name of `orgId: string`, `long id`, `id \\ 0`, `key = 5`. */
static hf__piece name_of(hf__piece param, bool last)
{
    hf__piece head = hf__piece_until(param, ":=\\?");
    size_t start = 0;
    size_t end;

    head = hf__piece_trim(head);
    end = head.size;
    if (last) {
        start = end;
        while (start > 0 && is_word(head.text[start - 1]))
            start--;
    } else {
        for (end = 0; end < head.size && is_word(head.text[end]);)
            end++;
    }
    return (hf__piece){head.text + start, end - start};
}

static void read_params(hf__piece list, bool last, hf__lambda *lambda)
{
    hf__pieces items = {0};

    hf__piece_split(list, false, &items);
    for (size_t i = 0; i < items.count && lambda->count < HF__PARAMS_MAX; i++)
        lambda->params[lambda->count++] = name_of(items.items[i], last);
}

static bool read_parentheses(struct cursor *in, hf__lambda *lambda)
{
    const hf__unit *unit = in->unit;
    hf__piece rest = {unit->text + in->at, in->limit - in->at};
    size_t close = rest.size > 0 && rest.text[0] == '(' ? hf__piece_close(rest, false) : SIZE_MAX;

    if (close > rest.size)
        return false;
    read_params((hf__piece){rest.text + 1, close - 2}, unit->syntax->id == HF__LANG_CSHARP, lambda);
    in->at += close;
    return true;
}

/* Skips a return type: `: number`, and of Kotlin `: Long`. */
static void skip_type(struct cursor *in)
{
    if (!take(in, ":"))
        return;
    skip_space(in);
    while (in->at < in->limit &&
           (is_word(in->unit->text[in->at]) || strchr(".<>?[]|", in->unit->text[in->at]) != NULL))
        in->at++;
}

/* What stands behind the name: parameters, then what leads to the expression. */
static bool read_header(struct cursor *in, hf__lambda *lambda)
{
    unsigned language = (unsigned)in->unit->syntax->id;

    if (language == HF__LANG_PYTHON) {
        if (!take(in, "=") || !take(in, "lambda"))
            return false;
        hf__piece rest = {in->unit->text + in->at, in->limit - in->at};
        hf__piece list = hf__piece_until(rest, ":\n");
        read_params(list, false, lambda);
        in->at += list.size;
        return take(in, ":");
    }
    if (language == HF__LANG_JS && (take(in, ":") || take(in, "=")))
        take(in, "async ");
    skip_space(in);
    if (!read_parentheses(in, lambda))
        return false;
    switch (language) {
    case HF__LANG_JS: skip_type(in); return take(in, "=>") && !take(in, "{");
    case HF__LANG_CSHARP: return take(in, "=>") && !take(in, "{");
    case HF__LANG_KOTLIN: skip_type(in); return take(in, "=");
    case HF__LANG_RUBY: return take(in, "=");
    default: return take(in, ",") && take(in, "do:");
    }
}

bool hf__lambda_find(const hf__unit *unit, hf__piece name, hf__lambda *lambda)
{
    const char *at = unit->text;
    bool found = false;

    if ((unit->syntax->id & LANGUAGES) == 0 || name.size < 2)
        return false;
    for (; (at = memmem(at, unit->size - (size_t)(at - unit->text), name.text, name.size)) != NULL;
         at++) {
        size_t place = (size_t)(at - unit->text);
        hf__lambda made = {0};
        struct cursor in = {.unit = unit, .at = place + name.size, .limit = unit->size};
        if (unit->classes[place] != HF__CODE || (place > 0 && is_word(at[-1])) ||
            is_word(at[name.size]))
            continue;
        if (in.limit - in.at > HEADER_MAX)
            in.limit = in.at + HEADER_MAX;
        if (!read_header(&in, &made))
            continue;
        skip_space(&in);
        made.at = in.at;
        made.body = (hf__piece){unit->text + in.at, hf__expression_end(unit, in.at) - in.at};
        if (found || made.body.size == 0)
            return false;
        *lambda = made;
        found = true;
    }
    return found;
}

size_t hf__lambda_param(const hf__lambda *lambda, hf__piece name)
{
    for (size_t i = 0; i < lambda->count; i++)
        if (lambda->params[i].size == name.size && name.size > 0 &&
            memcmp(lambda->params[i].text, name.text, name.size) == 0)
            return i;
    return HF__PARAMS_MAX;
}

void hf__lambda_params(const hf__lambda *lambda, hf__buf *names)
{
    for (size_t i = 0; i < lambda->count; i++) {
        hf__buf_add(names, lambda->params[i].text, lambda->params[i].size);
        hf__buf_puts(names, ",");
    }
}
