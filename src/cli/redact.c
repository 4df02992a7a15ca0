#include "cli/redact.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"

static const char mask[] = "***";

/* Where the password of an authority (what follows "://") starts, or NULL. *end is its '@'. */
static const char *authority_password(const char *authority, const char **end)
{
    /* A password may contain '/' or '@' unescaped by mistake: everything up to the last '@' of the
     * word counts as user and password. */
    size_t length = strcspn(authority, " \t\n");
    const char *at = memrchr(authority, '@', length);
    const char *colon = at != NULL ? memchr(authority, ':', (size_t)(at - authority)) : NULL;

    *end = at;
    return colon != NULL ? colon + 1 : NULL;
}

/* Behind the '=' of "password=" or "password =" (also sslpassword), or NULL. */
static const char *parameter_value(const char *text)
{
    static const char name[] = "password";

    if (strncasecmp(text, name, sizeof name - 1) != 0)
        return NULL;
    text += sizeof name - 1;
    text += strspn(text, " \t");
    if (*text != '=')
        return NULL;
    text++;
    return text + strspn(text, " \t");
}

static const char *parameter_end(const char *value)
{
    if (*value != '\'')
        return value + strcspn(value, " \t\n&");
    for (value++; *value != '\0' && *value != '\''; value++)
        if (*value == '\\' && value[1] != '\0')
            value++;
    return *value == '\'' ? value + 1 : value;
}

char *redact_passwords(const char *text)
{
    hf__buf out = {0};
    const char *start = NULL;
    const char *end = NULL;

    hf__buf_puts(&out, "");
    while (*text != '\0') {
        if (strncmp(text, "://", 3) == 0 && (start = authority_password(text + 3, &end)) != NULL) {
            hf__buf_add(&out, text, (size_t)(start - text));
        } else if ((start = parameter_value(text)) != NULL) {
            hf__buf_add(&out, text, (size_t)(start - text));
            end = parameter_end(start);
        } else {
            hf__buf_add(&out, text++, 1);
            continue;
        }
        hf__buf_puts(&out, mask);
        text = end;
    }
    if (out.broken) {
        hf__buf_free(&out);
        return NULL;
    }
    return out.data;
}
