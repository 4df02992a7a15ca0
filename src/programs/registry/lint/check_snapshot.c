#include "base/text.h"
#include "programs/registry/lint/check.h"

/* ---- Locks under a strict isolation ---------------------------------------------------------- */

/* A session lock that is acquired before the transaction begins is right. */
static bool is_under(const hf__check *check, const hf__use *use,
                     const hf__lint_statement *isolation)
{
    if (!hf__unit_encloses(check->unit, isolation->block, use->block))
        return false;
    if (use->block == HF__NO_BLOCK && check->unit->syntax->id == HF__LANG_SQL)
        return false;
    return use->lifetime == HF_TRANSACTION || isolation->at < use->at;
}

static void check_snapshot(hf__check *check, const hf__use *use)
{
    const hf__statements *statements = check->statements;
    char call[HF__CALL_SHOWN];
    char level[32];

    if (use->tries || !use->lifetime_known)
        return;
    for (size_t i = statements->first[HF__ISOLATION]; i < statements->first[HF__ISOLATION + 1];
         i++) {
        const hf__lint_statement *isolation = &statements->items[i];
        if (!is_under(check, use, isolation))
            continue;
        hf__show(level, sizeof level, check->unit->text + isolation->table, isolation->table_size);
        hf__check_report(
            check, HF__SNAPSHOT_TRAP, use->at,
            isolation->block == use->block && use->block != HF__NO_BLOCK ? HF__HIGH : HF__MEDIUM,
            "take the lock before the transaction begins (holdfast tx, hf_transact), or "
            "use READ COMMITTED",
            "%s is waited for in a %s transaction (line %u): its snapshot is older than "
            "what the last holder committed",
            hf__show_call(check, use, call), level, hf__unit_line(check->unit, isolation->at));
        return;
    }
}

/* ---- A read before the lock ------------------------------------------------------------------ */

/* Only the first lock of a block counts: whatever the others follow is under that lock. */
static bool is_first_lock(const hf__check *check, const hf__use *lock)
{
    for (const hf__use *use = check->uses->items; use < lock; use++)
        if (!use->unlocks && hf__unit_encloses(check->unit, use->block, lock->block))
            return false;
    return true;
}

/* Is there such a statement after the lock, in its block? table: only one of that table. */
static bool follows(const hf__check *check, const hf__use *lock, hf__statement_kind kind,
                    const hf__lint_statement *table)
{
    const hf__statements *statements = check->statements;

    for (size_t i = statements->first[kind]; i < statements->first[kind + 1]; i++) {
        const hf__lint_statement *statement = &statements->items[i];
        if (statement->at > lock->end &&
            (hf__unit_encloses(check->unit, lock->block, statement->block) ||
             hf__unit_encloses(check->unit, statement->block, lock->block)) &&
            (table == NULL || hf__same_table(check->unit, statement, table)))
            return true;
    }
    return false;
}

static int confidence_of(const hf__check *check, const hf__use *lock,
                         const hf__lint_statement *read)
{
    int confidence = follows(check, lock, HF__WRITE, read)   ? HF__HIGH
                     : follows(check, lock, HF__WRITE, NULL) ? HF__MEDIUM
                                                             : HF__LOW;
    bool far = read->block != lock->block || lock->block == HF__NO_BLOCK;

    return far && confidence > HF__LOW ? confidence - 1 : confidence;
}

static bool is_stale(const hf__check *check, const hf__use *lock, const hf__lint_statement *read)
{
    return read->at < lock->at && read->end <= lock->at &&
           hf__unit_encloses(check->unit, read->block, lock->block) &&
           !follows(check, lock, HF__READ, read);
}

/*
 * Is the lock in the same statement as the read? SELECT …, pg_advisory_lock(id) FROM t, or a CTE.
 */
static bool is_one_statement(const hf__check *check, const hf__use *lock,
                             const hf__lint_statement *read)
{
    const hf__unit *unit = check->unit;

    for (size_t at = read->at; at < lock->at; at++)
        if (unit->text[at] == ';' ||
            (unit->syntax->id != HF__LANG_SQL && unit->classes[at] == HF__QUOTE))
            return false;
    return true;
}

static void check_reads(hf__check *check, const hf__use *lock)
{
    const hf__statements *statements = check->statements;
    const hf__lint_statement *worst = NULL;
    int confidence = HF__CERTAIN;
    char call[HF__CALL_SHOWN];
    char table[64];

    /* Strings outside of functions are run somewhere else; what a wrapper reads is its business. */
    if (!lock->lifetime_known || lock->calls != NULL || lock->block == HF__NO_BLOCK ||
        !is_first_lock(check, lock))
        return;
    for (size_t i = statements->first[HF__READ]; i < statements->first[HF__READ + 1]; i++) {
        const hf__lint_statement *read = &statements->items[i];
        if (!is_stale(check, lock, read) || is_one_statement(check, lock, read))
            continue;
        int found = confidence_of(check, lock, read);
        if (found > confidence) {
            confidence = found;
            worst = read;
        }
    }
    if (worst == NULL)
        return;
    hf__show(table, sizeof table, check->unit->text + worst->table, worst->table_size);
    hf__check_report(check, HF__LOCK_AFTER_READ, lock->at, confidence,
                     "take the lock first, or read again under it",
                     "%s comes after %s was read (line %u): it may have changed since",
                     hf__show_call(check, lock, call), table,
                     hf__unit_line(check->unit, worst->at));
}

void hf__check_snapshots(hf__check *check)
{
    for (size_t i = 0; i < check->uses->count; i++) {
        const hf__use *use = &check->uses->items[i];
        if (use->unlocks || use->again)
            continue;
        check_snapshot(check, use);
        check_reads(check, use);
    }
}
