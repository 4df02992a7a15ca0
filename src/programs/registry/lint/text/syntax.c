#include "programs/registry/lint/text/syntax.h"

#include <string.h>
#include <strings.h>

static const hf__quote c_quotes[] = {
    {.open = "\"", .close = "\"", .escapes = true},
    {.open = "'", .close = "'", .escapes = true},
    {0},
};

static const hf__quote go_quotes[] = {
    {.open = "`", .close = "`", .lines = true},
    {.open = "\"", .close = "\"", .escapes = true},
    {.open = "'", .close = "'", .escapes = true},
    {0},
};

static const hf__quote js_quotes[] = {
    {.open = "`", .close = "`", .escapes = true, .lines = true, .hole = "${"},
    {.open = "\"", .close = "\"", .escapes = true},
    {.open = "'", .close = "'", .escapes = true},
    {0},
};

static const hf__quote python_quotes[] = {
    {.open = "\"\"\"", .close = "\"\"\"", .escapes = true, .lines = true},
    {.open = "'''", .close = "'''", .escapes = true, .lines = true},
    {.open = "\"", .close = "\"", .escapes = true},
    {.open = "'", .close = "'", .escapes = true},
    {0},
};

static const hf__quote ruby_quotes[] = {
    {.open = "\"", .close = "\"", .escapes = true, .lines = true, .hole = "#{"},
    {.open = "'", .close = "'", .escapes = true, .lines = true},
    {.open = "`", .close = "`", .escapes = true, .lines = true, .hole = "#{"},
    {0},
};

static const hf__quote java_quotes[] = {
    {.open = "\"\"\"", .close = "\"\"\"", .escapes = true, .lines = true},
    {.open = "\"", .close = "\"", .escapes = true},
    {.open = "'", .close = "'", .escapes = true},
    {0},
};

static const hf__quote kotlin_quotes[] = {
    {.open = "\"\"\"", .close = "\"\"\"", .lines = true, .hole = "${"},
    {.open = "\"", .close = "\"", .escapes = true, .hole = "${"},
    {.open = "'", .close = "'", .escapes = true},
    {0},
};

static const hf__quote csharp_quotes[] = {
    {.open = "\"\"\"", .close = "\"\"\"", .lines = true},
    {.open = "$@\"", .close = "\"", .doubled = true, .lines = true},
    {.open = "@$\"", .close = "\"", .doubled = true, .lines = true},
    {.open = "@\"", .close = "\"", .doubled = true, .lines = true},
    {.open = "\"", .close = "\"", .escapes = true},
    {.open = "'", .close = "'", .escapes = true},
    {0},
};

static const hf__quote rust_quotes[] = {
    {.open = "\"", .close = "\"", .escapes = true, .lines = true},
    {0},
};

static const hf__quote php_quotes[] = {
    {.open = "\"", .close = "\"", .escapes = true, .lines = true},
    {.open = "'", .close = "'", .escapes = true, .lines = true},
    {0},
};

static const hf__quote elixir_quotes[] = {
    {.open = "\"\"\"", .close = "\"\"\"", .escapes = true, .lines = true, .hole = "#{"},
    {.open = "'''", .close = "'''", .escapes = true, .lines = true, .hole = "#{"},
    {.open = "\"", .close = "\"", .escapes = true, .lines = true, .hole = "#{"},
    {.open = "'", .close = "'", .escapes = true, .lines = true, .hole = "#{"},
    {0},
};

static const hf__quote sql_quotes[] = {
    {.open = "E'", .close = "'", .escapes = true, .doubled = true, .lines = true},
    {.open = "e'", .close = "'", .escapes = true, .doubled = true, .lines = true},
    {.open = "'", .close = "'", .doubled = true, .lines = true},
    {0},
};

static const hf__quote prisma_quotes[] = {
    {.open = "\"", .close = "\"", .escapes = true},
    {0},
};

static const hf__quote perl_quotes[] = {
    {.open = "\"", .close = "\"", .escapes = true, .lines = true},
    {.open = "'", .close = "'", .escapes = true, .lines = true},
    {0},
};

static const hf__quote shell_quotes[] = {
    {.open = "\"", .close = "\"", .escapes = true, .lines = true, .hole = "${"},
    {.open = "'", .close = "'", .lines = true},
    {0},
};

static const hf__quote no_quotes[] = {{0}};

static const hf__syntax syntaxes[] = {
    {
        .id = HF__LANG_C,
        .suffixes = " c h cc cpp cxx c++ hpp hh hxx ipp inl pgc ",
        .line_comments = {"//"},
        .block_comments = true,
        .quotes = c_quotes,
    },
    {
        .id = HF__LANG_GO,
        .suffixes = " go ",
        .line_comments = {"//"},
        .block_comments = true,
        .newline_ends = true,
        .quotes = go_quotes,
    },
    {
        .id = HF__LANG_JS,
        .suffixes = " js ts jsx tsx mjs cjs mts cts ",
        .line_comments = {"//"},
        .block_comments = true,
        .regex_literals = true,
        .newline_ends = true,
        .quotes = js_quotes,
    },
    {
        .id = HF__LANG_PYTHON,
        .suffixes = " py pyi pyx ",
        .line_comments = {"#"},
        .newline_ends = true,
        .blocks = HF__BLOCKS_INDENTED,
        .quotes = python_quotes,
    },
    {
        .id = HF__LANG_RUBY,
        .suffixes = " rb rake gemspec ru ",
        .line_comments = {"#"},
        .regex_literals = true,
        .newline_ends = true,
        .blocks = HF__BLOCKS_ENDED,
        .quotes = ruby_quotes,
    },
    {
        .id = HF__LANG_JAVA,
        .suffixes = " java groovy scala ",
        .line_comments = {"//"},
        .block_comments = true,
        .quotes = java_quotes,
    },
    {
        .id = HF__LANG_KOTLIN,
        .suffixes = " kt kts ",
        .line_comments = {"//"},
        .block_comments = true,
        .nested_comments = true,
        .newline_ends = true,
        .quotes = kotlin_quotes,
    },
    {
        .id = HF__LANG_CSHARP,
        .suffixes = " cs ",
        .line_comments = {"//"},
        .block_comments = true,
        .quotes = csharp_quotes,
    },
    {
        .id = HF__LANG_RUST,
        .suffixes = " rs ",
        .line_comments = {"//"},
        .block_comments = true,
        .nested_comments = true,
        .quotes = rust_quotes,
    },
    {
        .id = HF__LANG_PHP,
        .suffixes = " php phtml inc ",
        .line_comments = {"//", "#"},
        .block_comments = true,
        .quotes = php_quotes,
    },
    {
        .id = HF__LANG_ELIXIR,
        .suffixes = " ex exs ",
        .line_comments = {"#"},
        .newline_ends = true,
        .blocks = HF__BLOCKS_ENDED,
        .quotes = elixir_quotes,
    },
    {
        .id = HF__LANG_SQL,
        .suffixes = " sql psql pgsql plpgsql ",
        .line_comments = {"--"},
        .block_comments = true,
        .nested_comments = true,
        .blocks = HF__BLOCKS_SQL,
        .quotes = sql_quotes,
    },
    {
        .id = HF__LANG_PRISMA,
        .suffixes = " prisma ",
        .line_comments = {"//"},
        .quotes = prisma_quotes,
    },
    {
        .id = HF__LANG_PERL,
        .suffixes = " pl pm t psgi ",
        .line_comments = {"#"},
        .regex_literals = true,
        .quotes = perl_quotes,
    },
    {
        .id = HF__LANG_SHELL,
        .suffixes = " sh bash zsh ksh ",
        .line_comments = {"#"},
        .newline_ends = true,
        .quotes = shell_quotes,
    },
    {
        .id = HF__LANG_TEXT, /* of workflows: shell inside of it, with quotes in prose beside it */
        .suffixes = " yml yaml ",
        .line_comments = {"#"},
        .newline_ends = true,
        .quotes = no_quotes,
    },
    {
        .id = HF__LANG_XML,
        .suffixes = " xml ",
        .quotes = no_quotes,
    },
};

const hf__syntax hf__text_syntax = {
    .id = HF__LANG_TEXT,
    .suffixes = "",
    .newline_ends = true,
    .quotes = no_quotes,
};

static bool has_word(const char *words, const char *word, size_t size)
{
    for (const char *at = words; (at = strcasestr(at, word)) != NULL; at++)
        if (at > words && at[-1] == ' ' && at[size] == ' ')
            return true;
    return false;
}

/* The dot before the suffix that tells the language: in x.sql.eex that is the first. */
static const char *suffix_of(const char *name, size_t *size)
{
    const char *dot = strrchr(name, '.');

    if (dot == NULL || dot[1] == '\0')
        return NULL;
    *size = strlen(dot + 1);
    if (!has_word(" eex erb j2 tmpl template in ", dot + 1, *size))
        return dot;
    const char *before = memrchr(name, '.', (size_t)(dot - name));
    if (before != NULL)
        *size = (size_t)(dot - before) - 1;
    return before;
}

const hf__syntax *hf__syntax_of(const char *name)
{
    const char *slash = strrchr(name, '/');
    size_t size = 0;
    const char *dot = suffix_of(slash != NULL ? slash : name, &size);
    char suffix[16];

    if (dot == NULL || size == 0 || size >= sizeof suffix || strchr(dot, ' ') != NULL)
        return NULL;
    memcpy(suffix, dot + 1, size);
    suffix[size] = '\0';
    for (size_t i = 0; i < sizeof syntaxes / sizeof syntaxes[0]; i++)
        if (has_word(syntaxes[i].suffixes, suffix, size))
            return &syntaxes[i];
    return NULL;
}
