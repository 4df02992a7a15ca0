/* Calls of the functions that take a lock for their callers. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/vec.h"
#include "programs/registry/lint/wrappers.h"

enum { CALLS_MAX = 5000 };

static const hf__use_kind wrapper_in_code = {
    .name = "wrapper",
    .languages = HF__LANG_ANY,
    .in_code = true,
    .releases = true,
};

static const hf__use_kind wrapper_in_sql = {
    .name = "wrapper of SQL",
    .languages = HF__LANG_ANY,
    .in_sql = true,
    .releases = true,
};

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* ---- Whose function is it? ------------------------------------------------------------------- */

/* Names that so many things have that a call in another file must show whose it is. */
static bool is_common(const char *name)
{
    static const char *const names[] = {
        "acquire", "lock",        "try_lock",  "trylock",      "unlock",     "release",
        "run",     "execute",     "query",     "call",         "with",       "new",
        "init",    "open",        "get",       "set",          "handle",     "start",
        "stop",    "main",        "do",        "constructor",  "__init__",   "close",
        "perform", "apply",       "process",   "update",       "create",     "insert",
        "delete",  "save",        "exec",      "test",         "setup",      "invoke",
        "wait",    "wrap",        "build",     "load",         "__enter__",  "initialize",
        "up",      "down",        "lockasync", "acquireasync", "tryacquire", "tryacquireasync",
        "sync",    "send",        "write",     "read",         "fetch",      "find",
        "check",   "__construct", NULL};

    for (const char *const *common = names; *common != NULL; common++)
        if (strcasecmp(*common, name) == 0)
            return true;
    return false;
}

static size_t param_count(const hf__wrapper *wrapper)
{
    size_t count = 0;

    for (const char *at = wrapper->params; at != NULL && *at != '\0'; at++)
        count += *at == ',';
    return count;
}

/* What the method at this place is called on, without what that belongs to; size 0: nothing. */
static hf__piece receiver_of(const hf__unit *unit, size_t at)
{
    size_t end = at;

    while (end > 0 && strchr(".:>-?", unit->text[end - 1]) != NULL)
        end--;
    size_t start = end;
    while (start > 0 && is_word(unit->text[start - 1]))
        start--;
    return (hf__piece){unit->text + start, end < at ? end - start : 0};
}

/* super().__init__(…) means the constructor of the class that this class is derived from. */
static bool is_derived(const hf__unit *unit, const hf__wrapper *wrapper, size_t at)
{
    size_t size = 0;
    size_t name = hf__class_around(unit, at, &size);
    hf__piece header = {unit->text + name + size, 0};

    if (wrapper->owner == NULL || size == 0)
        return true;
    while (name + size + header.size < unit->size &&
           strchr("{\n", header.text[header.size]) == NULL)
        header.size++;
    const char *base = memmem(header.text, header.size, wrapper->owner, strlen(wrapper->owner));
    return base != NULL && !is_word(base[-1]) && !is_word(base[strlen(wrapper->owner)]);
}

/* MySqlStore.php calls the locks of MySQL, though a class for PostgreSQL has the same method. */
static bool is_of_other_database(const char *path, const char *file)
{
    static const char *const names[] = {"mysql",     "mariadb", "sqlite", "mssql",
                                        "sqlserver", "oracle",  NULL};

    for (const char *const *name = names; *name != NULL; name++)
        if (strcasestr(path, *name) != NULL && strcasestr(file, *name) == NULL)
            return true;
    return false;
}

/*
 * Does a call with so many arguments mean this wrapper, though everybody has its name? Its class
 * tells: DistributedLock.run(name). So do its arguments: no mutex is locked with (ctx, name), and
 * with one argument what it is called on must speak of locks.
 */
static bool may_mean(const hf__unit *unit, const hf__wrapper *wrapper, size_t at, size_t count)
{
    hf__piece receiver = receiver_of(unit, at);
    bool locks = strcasestr(wrapper->name, "lock") != NULL ||
                 strncasecmp(wrapper->name, "acquire", 7) == 0 ||
                 strncasecmp(wrapper->name, "tryacquire", 10) == 0;

    if (!wrapper->declared && hf__is_constructor(wrapper->name, strlen(wrapper->name)))
        return strcmp(wrapper->name, "new") != 0 ? is_derived(unit, wrapper, at)
               : receiver.size > 0               ? unit->syntax->id != HF__LANG_RUBY
                                                 : strcmp(wrapper->file, unit->path) == 0;
    if (wrapper->declared || !is_common(wrapper->name) || strcmp(wrapper->file, unit->path) == 0)
        return true;
    if (wrapper->owner != NULL && strcmp(wrapper->owner, wrapper->name) == 0)
        return count > 0; /* a constructor: Lock(name), and not a Lock() of threads */
    if (receiver.size == 0)
        return false;
    if (wrapper->owner != NULL && strlen(wrapper->owner) == receiver.size &&
        memcmp(wrapper->owner, receiver.text, receiver.size) == 0)
        return true;
    return locks && count > 0 && count == param_count(wrapper) &&
           (count > 1 || hf__speaks_of_locks(receiver));
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static bool follows_word(const hf__unit *unit, size_t at, const char *word)
{
    size_t size = strlen(word);

    while (at > 0 && unit->text[at - 1] == ' ')
        at--;
    return at >= size && memcmp(unit->text + at - size, word, size) == 0;
}

/* Is the name at this place that of a declaration? */
static bool is_declaration(const hf__scope *scope, size_t at)
{
    static const char *const words[] = {"def", "defp",      "func",   "function", "fn",    "sub",
                                        "fun", "procedure", "import", "from",     "class", NULL};

    for (size_t i = 0; i < scope->unit->block_count; i++)
        if (scope->functions[i].name == at && scope->functions[i].name_size > 0)
            return true;
    for (const char *const *word = words; *word != NULL; word++)
        if (follows_word(scope->unit, at, *word))
            return true;
    return false;
}

/* `id int64` and `id: number` are parameters of a declaration without a body. */
static bool is_parameter(hf__piece argument)
{
    size_t at = 0;

    while (at < argument.size && is_word(argument.text[at]))
        at++;
    if (at == 0 || at == argument.size)
        return false;
    size_t next = at;
    next += argument.text[next] == '?';
    next += next < argument.size && argument.text[next] == ':';
    bool colon = next > at;
    while (next < argument.size && argument.text[next] == ' ')
        next++;
    if (next == at || next >= argument.size || !isalpha((unsigned char)argument.text[next]))
        return false;
    if (colon)
        return argument.text[next - 1] == ' ';
    return !(at == 3 && memcmp(argument.text, "new", 3) == 0) &&
           !(at == 5 && memcmp(argument.text, "await", 5) == 0) &&
           memchr(argument.text, '(', argument.size) == NULL &&
           memchr(argument.text, '"', argument.size) == NULL &&
           memchr(argument.text, '\'', argument.size) == NULL;
}

/*
 * Does the call leave no doubt which lock it takes? What it passes on of its own function's
 * parameters is for that function's callers to say.
 */
static bool is_sure(const hf__scope *scope, const hf__wrapper *wrapper, const hf__piece *args,
                    size_t count, hf__choice *choice, hf__piece *second)
{
    const hf__choice *open = &wrapper->choice;
    hf__worth passed = {0};
    size_t block = HF__NO_BLOCK;

    if (count >= wrapper->unsure_from)
        return false;
    if (open->field[0] == '\0' || open->param >= count || args[open->param].size == 0)
        return true;
    if (hf__piece_field(args[open->param], open->field, second))
        return second->size == 0 || open->pair;
    hf__value_read(scope, args[open->param], &passed, &block);
    int param = hf__value_param(&passed);
    hf__value_free(&passed);
    if (param < 0 || param >= HF__PARAMS_MAX)
        return false;
    *choice = *open;
    choice->param = (size_t)param;
    return true;
}

static hf_status add_call(const hf__scope *scope, hf__wrapper *wrapper, size_t at, size_t open,
                          hf__uses *uses, hf_error *err)
{
    const hf__unit *unit = scope->unit;
    hf__scope there = *scope;
    hf__args args;
    hf__piece pieces[HF__ARGS_MAX];
    hf__worth values[2] = {{0}};
    hf__piece second = {"", 0};
    size_t block = HF__NO_BLOCK;
    hf__use use = {.kind = wrapper->in_sql ? &wrapper_in_sql : &wrapper_in_code,
                   .start = at,
                   .at = at,
                   .args = open,
                   .block = hf__unit_block(unit, at),
                   .in_text = unit->classes[at] == HF__TEXT,
                   .tries = wrapper->tries,
                   .shared = wrapper->shared,
                   .labels = wrapper->labels,
                   .lifetime_known = wrapper->lifetime_known,
                   .lifetime = wrapper->lifetime,
                   .calls = wrapper};
    hf_status status = HF_OK;
    bool declaration = true;

    hf__args_read(unit, open, &args);
    use.end = args.end;
    size_t count = args.count < HF__ARGS_MAX ? args.count : HF__ARGS_MAX;
    for (size_t i = 0; i < count; i++) {
        pieces[i] = args.text.data != NULL
                        ? hf__piece_trim((hf__piece){args.text.data + args.start[i], args.size[i]})
                        : (hf__piece){"", 0};
        declaration = declaration && is_parameter(pieces[i]);
    }
    /* A closure may be too long to be read to its end. */
    bool read = args.complete || count > 0;
    bool none = count == 1 && pieces[0].size == 0;
    bool meant = !is_of_other_database(unit->path, wrapper->file) &&
                 (wrapper->statement || (may_mean(unit, wrapper, at, none ? 0 : count) &&
                                         !(args.complete && declaration)));
    if (meant && !args.text.broken) {
        there.at = at;
        there.code = !use.in_text && unit->syntax->id != HF__LANG_SQL;
        there.string_end = use.in_text ? hf__unit_run_end(unit, args.end - 1) : SIZE_MAX;
        if (wrapper->statement)
            count = hf__pieces_of_list(pieces, count, HF__ARGS_MAX);
        if (!wrapper->declared)
            count = hf__pieces_by_name(pieces, count, HF__ARGS_MAX, wrapper->params);
        size_t given = count;
        if (!wrapper->declared && args.complete)
            count = hf__pieces_by_default(pieces, count, HF__ARGS_MAX, wrapper->params);
        bool one = !hf__project_is_ambiguous(scope->project, wrapper, unit->path);
        bool sure = one && is_sure(&there, wrapper, pieces, given, &use.choice, &second);
        bool pair = wrapper->pair || second.size > 0;
        for (size_t i = 0; i < 1 + (size_t)wrapper->pair && sure && read; i++)
            hf__value_apply(&there, &wrapper->key[i], pieces, count, &values[i], &block);
        if (second.size > 0 && sure)
            hf__value_read(&there, second, &values[1], &block);
        status = hf__lock_key_make(values, pair, wrapper->labels, block, &use.key, err);
        if (!read)
            use.key.why = "its arguments cannot be read";
        else if (!sure)
            use.key.why = one ? "it takes one of several locks"
                              : "functions of this name take different locks";
        bool hidden = sure &&
                      (wrapper->key[0].field[0] != '\0' || wrapper->key[1].field[0] != '\0') &&
                      block == HF__NO_BLOCK && use.key.kind == HF__KEY_UNKNOWN;
        wrapper->hidden = wrapper->hidden || hidden;
        if (status == HF_OK && !hidden)
            status = hf__uses_add(uses, &use, err);
        else
            hf__lock_key_free(&use.key);
    }
    hf__args_free(&args);
    return status;
}

/* x.lock(key) in a function `lock`: it calls one of the same name, not itself. */
static bool is_delegated(const hf__scope *scope, size_t at, size_t size)
{
    const hf__unit *unit = scope->unit;
    size_t block = hf__unit_block(unit, at);

    for (; at > 0 && block != HF__NO_BLOCK; block = unit->blocks[block].parent) {
        const hf__function *function = &scope->functions[block];
        if (function->name_size == size &&
            memcmp(unit->text + function->name, unit->text + at, size) == 0)
            return unit->text[at - 1] == '.' || unit->text[at - 1] == '>';
    }
    return false;
}

/* query(SQL, a, b): what is bound follows the constant. A short name is meant near to it only. */
static size_t opening_of_statement(const hf__unit *unit, const hf__wrapper *wrapper, size_t at)
{
    const char *slash = strrchr(unit->path, '/');
    size_t folder = slash != NULL ? (size_t)(slash - unit->path) + 1 : 0;
    bool near = strncmp(unit->path, wrapper->file, folder) == 0 &&
                strchr(wrapper->file + folder, '/') == NULL;

    if (strcmp(unit->path, wrapper->file) == 0 || (!near && strlen(wrapper->name) < 8))
        return 0;
    while (at < unit->size && isspace((unsigned char)unit->text[at]))
        at++;
    return at < unit->size && unit->text[at] == ',' ? at + 1 : 0;
}

/* to_thread(f, key) of Python calls f(key), as run_in_executor(None, f, key) and partial do. */
static size_t opening_of_passed(const hf__unit *unit, size_t start, size_t at)
{
    static const char *const callers[] = {"to_thread(", "run_in_executor(", "partial(",
                                          "submit(",    "run_sync(",        NULL};
    size_t line = start;

    if (unit->syntax->id != HF__LANG_PYTHON || at >= unit->size || unit->text[at] != ',')
        return 0;
    while (line > 0 && start - line < 80 && unit->text[line - 1] != ')')
        line--;
    for (const char *const *caller = callers; *caller != NULL; caller++)
        if (memmem(unit->text + line, start - line, *caller, strlen(*caller)) != NULL)
            return at + 1;
    return 0;
}

/* Where the arguments of the call begin; 0: this is no call. */
static size_t opening(const hf__unit *unit, size_t end)
{
    size_t at = end;

    static const char *const made[] = {".new", "::new", "->new", NULL};

    if (at < unit->size && strchr("!?", unit->text[at]) != NULL)
        at++;
    for (const char *const *word = made; *word != NULL; word++) {
        size_t size = strlen(*word);
        if (unit->size - at > size && memcmp(unit->text + at, *word, size) == 0 &&
            !is_word(unit->text[at + size]))
            at += size;
    }
    while (at < unit->size && (unit->text[at] == ' ' || unit->text[at] == '\t'))
        at++;
    if (at < unit->size && unit->text[at] == '<') { /* name<T>( */
        while (at < unit->size && at - end < 80 && unit->text[at] != '>' && unit->text[at] != '\n')
            at++;
        at++;
    }
    if (at < unit->size && unit->text[at] == '(')
        return at + 1;
    return unit->syntax->id == HF__LANG_RUBY && at > end && at < unit->size &&
                   strchr("\"':", unit->text[at]) != NULL
               ? at
               : 0;
}

hf_status hf__wrapper_calls_find(const hf__scope *scope, hf__uses *uses, hf_error *err)
{
    const hf__unit *unit = scope->unit;
    hf__project *project = scope->project;
    size_t direct = uses->count;
    hf_status status = HF_OK;
    hf__pcre_match match;

    if (project->names == NULL)
        return HF_OK;
    for (size_t at = 0; status == HF_OK; at = match.end[0]) {
        hf__pcre_found found = hf__pcre_find(project->names, unit->text, unit->size, at, &match);
        uses->incomplete = uses->incomplete || found == HF__PCRE_TOO_HARD;
        if (found != HF__PCRE_FOUND || uses->count >= CALLS_MAX)
            break;
        size_t place = match.start[0];
        hf__wrapper *wrapper = hf__project_wrapper(
            project, unit->text + place, match.end[0] - place, (unsigned)unit->syntax->id,
            unit->path, is_delegated(scope, place, match.end[0] - place));
        hf__piece owner = receiver_of(unit, place);
        hf__wrapper *of_class = hf__project_method(project, unit->text + place,
                                                   match.end[0] - place, owner.text, owner.size);
        wrapper = of_class != NULL ? of_class : wrapper;
        size_t open = wrapper == NULL || wrapper->settled ? 0
                      : wrapper->statement ? opening_of_statement(unit, wrapper, match.end[0])
                                           : opening(unit, match.end[0]);
        if (open == 0 && wrapper != NULL && !wrapper->settled)
            open = opening_of_passed(unit, place, match.end[0]);
        for (size_t i = 0; open > 0 && i < direct; i++) /* a library's function is known anyway */
            if (place >= uses->items[i].start && place < uses->items[i].end)
                open = 0;
        if (uses->count > direct && place < uses->items[uses->count - 1].args &&
            place > uses->items[uses->count - 1].start)
            open = 0; /* `new` of X::new(…) */
        if (open == 0 || is_declaration(scope, place) ||
            (wrapper->in_sql ? !hf__unit_is_sql(unit, place) : unit->classes[place] != HF__CODE))
            continue;
        status = add_call(scope, wrapper, place, open, uses, err);
    }
    return status;
}
