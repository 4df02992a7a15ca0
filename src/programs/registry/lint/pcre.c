#include "programs/registry/lint/pcre.h"

#include <stdlib.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

enum { JIT_STACK_MIN = 32 * 1024, JIT_STACK_MAX = 1024 * 1024, HEAP_LIMIT_KIB = 20 * 1024 };

struct hf__pcre {
    pcre2_code *code;
    pcre2_match_data *data;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
};

static bool make_room(hf__pcre *regex)
{
    regex->data = pcre2_match_data_create(HF__GROUPS_MAX, NULL);
    regex->context = pcre2_match_context_create(NULL);
    if (regex->data == NULL || regex->context == NULL)
        return false;
    pcre2_set_match_limit(regex->context, HF__MATCH_LIMIT);
    pcre2_set_heap_limit(regex->context, HEAP_LIMIT_KIB);
    if (pcre2_jit_compile(regex->code, PCRE2_JIT_COMPLETE) != 0)
        return true; /* no JIT on this machine: the interpreter has the same limits */
    regex->stack = pcre2_jit_stack_create(JIT_STACK_MIN, JIT_STACK_MAX, NULL);
    if (regex->stack == NULL)
        return false;
    pcre2_jit_stack_assign(regex->context, NULL, regex->stack);
    return true;
}

static hf_status compile(const char *pattern, uint32_t options, hf__pcre **made, hf_error *err)
{
    PCRE2_SIZE offset = 0;
    int number = 0;
    hf__pcre *regex = calloc(1, sizeof *regex);

    if (regex == NULL)
        return hf__no_memory(err);
    regex->code =
        pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, options, &number, &offset, NULL);
    if (regex->code == NULL) {
        PCRE2_UCHAR why[128];
        pcre2_get_error_message(number, why, sizeof why);
        hf__pcre_free(regex);
        return hf__fail(err, HF_INVALID, "bad expression at character %zu of '%s': %s", offset + 1,
                        pattern, (const char *)why);
    }
    if (!make_room(regex)) {
        hf__pcre_free(regex);
        return hf__no_memory(err);
    }
    *made = regex;
    return HF_OK;
}

hf_status hf__pcre_compile(const char *pattern, hf__pcre **regex, hf_error *err)
{
    return compile(pattern, PCRE2_CASELESS | PCRE2_MULTILINE | PCRE2_NEVER_UTF, regex, err);
}

hf_status hf__pcre_compile_exact(const char *pattern, hf__pcre **regex, hf_error *err)
{
    return compile(pattern, PCRE2_DOTALL | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_UTF, regex, err);
}

void hf__pcre_free(hf__pcre *regex)
{
    if (regex == NULL)
        return;
    pcre2_jit_stack_free(regex->stack);
    pcre2_match_context_free(regex->context);
    pcre2_match_data_free(regex->data);
    pcre2_code_free(regex->code);
    free(regex);
}

void hf__pcre_limit(hf__pcre *regex, uint32_t match_limit)
{
    pcre2_set_match_limit(regex->context, match_limit);
}

unsigned hf__pcre_group(const hf__pcre *regex, const char *name)
{
    int number = pcre2_substring_number_from_name(regex->code, (PCRE2_SPTR)name);

    return number > 0 ? (unsigned)number : 0;
}

hf__pcre_found hf__pcre_find(hf__pcre *regex, const char *text, size_t size, size_t from,
                             hf__pcre_match *match)
{
    int count =
        pcre2_match(regex->code, (PCRE2_SPTR)text, size, from, 0, regex->data, regex->context);

    if (count == PCRE2_ERROR_NOMATCH)
        return HF__PCRE_NOT_FOUND;
    if (count < 0)
        return HF__PCRE_TOO_HARD;

    const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(regex->data);
    for (size_t i = 0; i < HF__GROUPS_MAX; i++) {
        bool took_part = i < (size_t)count && ends[2 * i] != PCRE2_UNSET;
        match->start[i] = took_part ? ends[2 * i] : SIZE_MAX;
        match->end[i] = took_part ? ends[2 * i + 1] : SIZE_MAX;
    }
    return HF__PCRE_FOUND;
}
