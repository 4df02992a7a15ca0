#include "programs/registry/lint/uses.h"

/* What stands before a method of a store. The name counts where a file does not load Holdfast. */
#define STORE "(?:(?<store>store)|(?<=[\\w)\\]]))\\s*\\.\\s*"

#define FUNCTION                                                                                   \
    "(?<name>pg_(?<try>try_)?advisory_(?:(?<unlock>unlock)(?<all>_all)?|(?<xact>xact_)?lock)"      \
    "(?<shared>_shared)?)"

const hf__use_kind hf__use_kinds[HF__USE_KINDS] = {
    {
        .name = "sql",
        .regex =
            "(?<![\\w$.])(?:\\\\?\"{0,2}pg_catalog\\\\?\"{0,2}\\s*\\.\\s*)?\\\\?\"{0,2}" FUNCTION
            "\\\\?\"{0,2}\\s*\\(",
        .languages = HF__LANG_ANY,
        .in_sql = true,
    },
    {
        .name = "sql function by name", /* function('pg_advisory_xact_lock', ?) of JPQL */
        .regex = "\\bfunction\\s*\\(\\s*'" FUNCTION "'\\s*,",
        .languages = HF__LANG_JAVA | HF__LANG_KOTLIN,
        .in_sql = true,
    },
    {
        .name = "SQLAlchemy, peewee",
        .regex = "\\b(?:func|fn)\\s*\\.\\s*" FUNCTION "\\s*\\(",
        .languages = HF__LANG_PYTHON,
        .in_code = true,
    },
    {
        .name = "Diesel, and blocks of Sequel",
        .regex = "(?<!fn )(?<!def )(?<![\\w.])" FUNCTION "\\s*\\(",
        .languages = HF__LANG_RUST | HF__LANG_RUBY,
        .in_code = true,
    },
    {
        /* No language has it, but code that the scanner takes for code may be a string in truth. */
        .name = "sql in doubt",
        .in_doubt = true,
        .regex = "(?<!def )(?<!func )(?<!function )(?<!fun )(?<!sub )(?<!defp )(?<!void )"
                 "(?<![\\w.>:$@&])" FUNCTION "\\s*\\(",
        .languages = HF__LANG_ANY & ~(unsigned)(HF__LANG_RUST | HF__LANG_RUBY | HF__LANG_SQL |
                                                HF__LANG_XML | HF__LANG_TEXT | HF__LANG_PHP),
        .in_code = true,
    },
    {
        .name = "Sequel",
        .regex = "\\bfunction\\s*\\(\\s*:" FUNCTION "\\s*,",
        .languages = HF__LANG_RUBY,
        .in_code = true,
    },
    {
        .name = "with_advisory_lock",
        .regex = "(?<!def )(?<!\\w)with_advisory_lock(?:!|_result)?[ (]\\s*(?=[\"':A-Z])",
        .languages = HF__LANG_RUBY,
        .in_code = true,
        .labels = true,
        .derivation = "with-advisory-lock",
        .releases = true,
        .transaction_if = "\\btransaction:\\s*true",
    },
    {
        .name = "django-pglocks",
        .regex = "(?<!def )(?<![\\w])advisory_lock\\s*\\(",
        .languages = HF__LANG_PYTHON,
        .in_code = true,
        .labels = true,
        .derivation = "crc32",
        .params = "lock_id,",
        .releases = true,
    },
    {
        .name = "django-pglock",
        .params = "lock_id,",
        .regex = "(?<![\\w])pglock\\.advisory\\s*\\(",
        .languages = HF__LANG_PYTHON,
        .in_code = true,
        .labels = true,
        .derivation = "",
        .releases = true,
        .transaction_if = "\\bxact\\s*=\\s*True",
    },
    {
        .name = "npm advisory-lock",
        .regex = "(?<!function )\\b(?:create|get)Mutex\\s*\\(",
        .languages = HF__LANG_JS,
        .in_code = true,
        .labels = true,
        .derivation = "",
        .releases = true,
        .file_has = "advisory-lock",
    },
    {
        .name = "go-pglock",
        .regex = "\\bpglock\\.NewLock\\s*\\(",
        .languages = HF__LANG_GO,
        .in_code = true,
        .argument = 1,
        .releases = true,
    },
    {
        .name = "sqlx",
        .regex = "\\bPgAdvisoryLock::new\\s*\\(",
        .languages = HF__LANG_RUST,
        .in_code = true,
        .labels = true,
        .derivation = "",
        .releases = true,
    },
    {
        .name = "DistributedLock.Postgres",
        .regex = "\\bPostgresAdvisoryLockKey\\s*\\((?!\\s*(?:string|long|int|Guid)\\b)",
        .languages = HF__LANG_CSHARP,
        .in_code = true,
        .labels = true,
        .pairs = true,
        .releases = true,
        .lifetime_unknown = true,
    },
    {
        .name = "libholdfast",
        .regex = "(?<!define )\\b(?<own>HF_)(?:LABEL(?:_AS)?|KEY)\\s*\\(|"
                 "[{,]\\s*\\.(?<name>label)\\s*=\\s*(?=[\"\\w](?!ULL\\b))",
        .languages = HF__LANG_C,
        .in_code = true,
        .labels = true,
        .releases = true,
        .lifetime_unknown = true,
        .ours = true,
        .how = 1,
    },
    {
        .name = "holdfast in SQL",
        .regex = "(?<![\\w$.])\\\\?\"{0,2}holdfast\\\\?\"{0,2}\\s*\\.\\s*\\\\?\"{0,2}"
                 "(?<name>(?<try>try_)?(?:(?<xact>serialize)|(?<=try_)lock)|(?<unlock>unlock))"
                 "\\\\?\"{0,2}\\s*\\(",
        .languages = HF__LANG_ANY,
        .in_sql = true,
        .labels = true,
        .derivation = "sha256",
        .ours = true,
        .params = "label,derivation,",
        .how = 1,
    },
    {
        .name = "store.lock",
        .regex = STORE "(?<name>(?-i:lock(?:ed)?|withLock))\\s*\\(",
        .languages = HF__LANG_PYTHON | HF__LANG_JS,
        .in_code = true,
        .labels = true,
        .releases = true,
        .lifetime_unknown = true,
        .ours = true,
        .params = "what,",
    },
    {
        .name = "store.transact of Python",
        .regex = STORE "(?<name>(?-i:transact))\\s*\\(",
        .languages = HF__LANG_PYTHON,
        .in_code = true,
        .labels = true,
        .argument = 1,
        .releases = true,
        .lifetime_unknown = true,
        .ours = true,
        .params = "fn,labels,",
    },
    {
        .name = "store.transaction",
        .regex = "(?<store>store)\\.(?<name>(?-i:transaction))\\s*\\(",
        .languages = HF__LANG_PYTHON,
        .in_code = true,
        .labels = true,
        .releases = true,
        .lifetime_unknown = true,
        .ours = true,
        .params = "labels,",
    },
    {
        .name = "store.transact of JavaScript",
        .regex = STORE "(?<name>(?-i:transact))\\s*\\(",
        .languages = HF__LANG_JS,
        .in_code = true,
        .labels = true,
        .releases = true,
        .lifetime_unknown = true,
        .ours = true,
    },
    {
        .name = "store.Lock",
        .regex = STORE "(?<name>(?-i:Lock(?:All)?|WithLock|Transact))\\s*\\(",
        .languages = HF__LANG_GO,
        .in_code = true,
        .labels = true,
        .argument = 1,
        .releases = true,
        .lifetime_unknown = true,
        .ours = true,
    },
    {
        .name = "holdfast.serialize",
        .regex = "(?<![.\\w])(?:holdfast\\.(?:aio\\.)?)?(?<!def "
                 ")(?<name>(?<xact>(?-i:serialize)))\\s*\\(",
        .languages = HF__LANG_PYTHON | HF__LANG_JS,
        .in_code = true,
        .labels = true,
        .argument = 1,
        .releases = true,
        .derivation = "sha256",
        .ours = true,
        .params = "transaction,label,derivation,",
        .how = 2,
    },
    {
        .name = "holdfast.Serialize",
        .regex = "\\bholdfast\\.(?<name>(?<xact>(?-i:Serialize(?:As)?)))\\s*\\(",
        .languages = HF__LANG_GO,
        .in_code = true,
        .labels = true,
        .argument = 2,
        .releases = true,
        .derivation = "sha256",
        .ours = true,
        .how = 3,
    },
    {
        .name = "tx.serialize",
        .regex = "\\btx\\.(?<name>(?<xact>serialize))\\s*\\(",
        .languages = HF__LANG_PYTHON | HF__LANG_JS | HF__LANG_GO,
        .in_code = true,
        .labels = true,
        .releases = true,
        .lifetime_unknown = true,
        .ours = true,
    },
    {
        .name = "the name of a function", /* fn = "pg_advisory_lock", f("…", x) */
        .regex = "(?:(?<![=!<>])=|[?:]|=>|\\breturn|\\((?=\\s*[\"'`:]\\w+[\"'`]?\\s*,))\\s*"
                 "[\"'`]" FUNCTION "[\"'`]",
        .languages = HF__LANG_ANY & ~(unsigned)(HF__LANG_SQL | HF__LANG_XML | HF__LANG_TEXT),
        .in_sql = true,
        .bare = true,
        .releases = true,
    },
    {
        .name =
            "a part of a function's name", /* "pg_" + how + "advisory_lock", `pg_${how}advisory_` */
        .regex = "(?:(?<!\\w)(?:pg_(?:try_)?)?advisory_(?:xact_)?(?=[\"'`%]|[$#]?\\{)|"
                 "(?<!\\w)pg_(?:try_)?advisory_(?:xact_)?lock(?=[$#]?\\{|%s|[\"']\\s*\\+)|"
                 "(?<=[}\"'`])advisory_(?:xact_)?lock(?:_shared)?\\s*\\()",
        .languages = HF__LANG_ANY & ~(unsigned)(HF__LANG_SQL | HF__LANG_XML | HF__LANG_TEXT),
        .in_sql = true,
        .bare = true,
        .releases = true,
    },
};
