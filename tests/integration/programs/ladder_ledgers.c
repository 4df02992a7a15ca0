/*
 * Scenarios of lib/ledgers, which the library uses itself and exports little of. Each begins with a
 * network that the other store has made anew, and ends with a look through that store: what failed
 * has done all of its work or nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ladder.h"
#include "lib/ledgers/ledgers.h"

struct scene {
    hf_network *mine;   /* on the store whose calls fail */
    hf_network *theirs; /* on the other */
};

static hf_status run_all(hf_tx *tx, const char *const *statements, hf_error *err)
{
    hf_status status = HF_OK;
    for (; status == HF_OK && *statements; statements++)
        status = hf_tx_query(tx, *statements, 0, NULL, false, NULL, err);
    return status;
}

static hf_status drop_tables(hf_tx *tx, void *arg, hf_error *err)
{
    static const char *const on_postgres[] = {"DROP SCHEMA IF EXISTS ingest_ladder CASCADE", NULL};
    static const char *const on_sqlite[] = {
        "DROP TABLE IF EXISTS ingest_store",      "DROP TABLE IF EXISTS ingest_coverage",
        "DROP TABLE IF EXISTS ledgers",           "DROP TABLE IF EXISTS transactions",
        "DROP TABLE IF EXISTS ingest_quarantine", NULL};
    const hf_network *network = arg;
    return run_all(tx, network->local ? on_sqlite : on_postgres, err);
}

static void by_the_other(struct scene *scene, hf_tx_fn *fn, const char *what)
{
    hf_error err = {0};
    bool spared = rungs_spare(true);
    if (hf__network_transact(scene->theirs, fn, scene->theirs, &err) != HF_OK)
        complain(what, &err);
    rungs_spare(spared);
}

static hf_status clear_tables(hf_tx *tx, void *arg, hf_error *err)
{
    static const char *const tables[] = {"ingest_store", "ingest_coverage", "ledgers"};
    const hf_network *network = arg;
    hf_status status = HF_OK;
    for (size_t i = 0; status == HF_OK && i < sizeof tables / sizeof *tables; i++) {
        char sql[200];
        (void)snprintf(sql, sizeof sql, "DELETE FROM %s%s", network->prefix, tables[i]);
        status = hf_tx_query(tx, sql, 0, NULL, false, NULL, err);
    }
    return status;
}

/* A network without tables, or with what fill writes into empty ones. */
static hf_status set_scene(hf_store *store, struct scene *scene, hf_tx_fn *fill, hf_error *err)
{
    hf_network_options options = HF_NETWORK_OPTIONS_INIT;
    hf_error why = {0};
    options.name = "ladder";
    options.read_wait_ms = PATIENCE_MS;
    *scene = (struct scene){0};
    bool spared = rungs_spare(true);
    if (hf_network_open(other, &options, &scene->theirs, &why) != HF_OK)
        complain("the other store has no network", &why);
    if (!fill)
        by_the_other(scene, drop_tables, "the tables of another time stay");
    else if (hf__tables_install(scene->theirs, &why) != HF_OK ||
             hf__partitions_ensure(scene->theirs, 1, 8, HF__PARTITION_LEDGERS, &why) != HF_OK)
        complain("the other store cannot make the tables", &why);
    if (fill) {
        by_the_other(scene, clear_tables, "the rows of another time stay");
        by_the_other(scene, fill, "the other store cannot fill the tables");
    }
    rungs_spare(spared);
    return hf_network_open(store, &options, &scene->mine, err);
}

static void end_scene(struct scene *scene)
{
    hf_network_free(scene->mine);
    hf_network_free(scene->theirs);
}

/* ---- what is covered ------------------------------------------------------------------------- */

struct expected {
    hf_network *network;
    hf_range ranges[4]; /* up to one whose end is 0 */
    bool is_so;
};

static hf_status compare(hf_tx *tx, void *arg, hf_error *err)
{
    struct expected *expected = arg;
    hf__ranges found = {0};
    hf_status status = hf__coverage_read(tx, expected->network, 0, 1000, &found, err);
    size_t count = 0;
    while (expected->ranges[count].to > 0)
        count++;
    expected->is_so =
        found.count == count &&
        (count == 0 || memcmp(found.items, expected->ranges, count * sizeof *found.items) == 0);
    hf__ranges_free(&found);
    return status;
}

static bool is_covered(const struct scene *scene, struct expected expected)
{
    hf_error err = {0};
    bool spared = rungs_spare(true);
    expected.network = scene->theirs;
    if (hf__network_transact(scene->theirs, compare, &expected, &err) != HF_OK)
        complain("the other store cannot read coverage", &err);
    rungs_spare(spared);
    return expected.is_so;
}

/* All of it if it was done, nothing if it failed, and either if that is in doubt. */
static void check_coverage(const struct scene *scene, hf_status status, struct expected before,
                           struct expected after)
{
    bool is_old = is_covered(scene, before), is_new = is_covered(scene, after);
    if (status == HF_OK ? !is_new : status == HF_IN_DOUBT ? !is_old && !is_new : !is_old)
        complain(status == HF_OK ? "coverage is not what was asked for"
                                 : "a failure has changed coverage",
                 NULL);
}

/* ---- scenarios ------------------------------------------------------------------------------- */

static hf_status find_network(hf_tx *tx, void *arg, hf_error *err)
{
    hf_network *found = NULL;
    hf_status status = hf__network_find(arg, tx, "ingest_ladder", &found, err);
    if (status == HF_OK && strcmp(found->name, "ladder") != 0)
        complain("the schema holds another network", NULL);
    hf_network_free(found);
    return status;
}

/* The tables are made where there are none, and found where they are. */
hf_status do_install(hf_store *store, hf_error *err)
{
    struct scene scene;
    hf_error why = {0};
    bool there = false, complete = false;
    hf_status status = set_scene(store, &scene, NULL, err);
    if (status == HF_OK)
        status = hf__tables_install_coverage(scene.mine, err);
    if (status == HF_OK)
        status = hf__tables_install(scene.mine, err);
    if (status == HF_OK)
        status = hf__tables_install(scene.mine, err);
    if (status == HF_OK)
        status = hf__tables_check(scene.mine, &there, err);
    if (status == HF_OK && !there)
        complain("the tables are not found", NULL);
    if (status == HF_OK)
        status = hf__schema_read(store, "ingest_ladder", PATIENCE_MS, find_network, store, err);
    bool spared = rungs_spare(true);
    if (hf__tables_install(scene.theirs, &why) != HF_OK ||
        hf__tables_check(scene.theirs, &complete, &why) != HF_OK || !complete)
        complain("the tables cannot be made any more", &why);
    rungs_spare(spared);
    end_scene(&scene);
    return status;
}

static hf_status cover_some(hf_tx *tx, void *arg, hf_error *err)
{
    hf_status status = hf__coverage_add(tx, arg, 10, 19, err);
    return status == HF_OK ? hf__coverage_add(tx, arg, 30, 39, err) : status;
}

static hf_status change_coverage(hf_tx *tx, void *arg, hf_error *err)
{
    hf_network *network = arg;
    hf_range runs[] = {{5, 9}, {20, 22}}, last = {0};
    bool found = false;
    int64_t row_from = 0;
    hf_status status =
        hf__coverage_add_runs(tx, network, &(hf__ranges){.items = runs, .count = 2}, err);
    if (status == HF_OK)
        status = hf__coverage_add(tx, network, 25, 45, err); /* the last row keeps its start */
    if (status == HF_OK)
        status = hf__coverage_extend(tx, network, 30, 45, 46, err);
    if (status == HF_OK)
        status = hf__coverage_extend(tx, network, 29, 46, 47, err); /* it begins elsewhere */
    if (status == HF_OK)
        status = hf__coverage_clip(tx, network, 6, 46, err);
    if (status == HF_OK)
        status = hf__coverage_last(tx, network, &found, &last, &row_from, err);
    if (status == HF_OK && (!found || last.from != 25 || last.to != 46 || row_from != 30))
        complain("the last range is another", NULL);
    if (status == HF_OK)
        status = hf__cursor_write(tx, network, network->latest, 45, err);
    if (status == HF_OK)
        status = hf__cursor_move(tx, network, network->latest, 45, 46, err);
    return status;
}

hf_status do_cover(hf_store *store, hf_error *err)
{
    struct scene scene;
    hf_range *gaps = NULL;
    size_t count = 0;
    hf_status status = set_scene(store, &scene, cover_some, err);
    if (status == HF_OK)
        status = hf__network_transact(scene.mine, change_coverage, scene.mine, err);
    check_coverage(&scene, status, (struct expected){.ranges = {{10, 19}, {30, 39}}},
                   (struct expected){.ranges = {{6, 22}, {25, 46}}});
    if (status == HF_OK)
        status = hf_network_gaps(scene.mine, 0, 0, &gaps, &count, err);
    if (status == HF_OK && (count != 1 || gaps[0].from != 23 || gaps[0].to != 24))
        complain("the gaps are others", NULL);
    free(gaps);
    end_scene(&scene);
    return status;
}

/* Ledgers 1 to 8, of which 2 is below the floor, 5 not there, and 7 has lost a transaction. */
static hf_status fill_ledgers(hf_tx *tx, void *arg, hf_error *err)
{
    hf_network *network = arg;
    hf_status status = HF_OK;
    for (int64_t i = 1; status == HF_OK && i <= 8; i++) {
        char number[24];
        const hf_value values[] = {hf__number_value(number, i), HF_TEXT(i == 7 ? "1" : "0")};
        const char *insert =
            network->local ? "INSERT INTO ledgers VALUES ($1, 'h', NULL, 'now', $2)"
                           : "INSERT INTO ingest_ladder.ledgers VALUES ($1, 'h', NULL, now(), $2)";
        if (i != 5)
            status = hf_tx_query(tx, insert, 2, values, false, NULL, err);
    }
    if (status == HF_OK)
        status = hf__coverage_add(tx, network, 3, 7, err);
    if (status == HF_OK)
        status = hf__cursor_write(tx, network, HF__RETENTION_FLOOR, 3, err);
    return status;
}

static void note(void *arg, hf__disagreement kind, hf_range ledgers)
{
    hf_range *noted = arg;
    noted[kind] = ledgers;
}

hf_status do_verify(hf_store *store, hf_error *err)
{
    struct scene scene;
    hf__repair repair = {0};
    hf_range noted[3] = {{0}};
    hf_status status = set_scene(store, &scene, fill_ledgers, err);
    if (status == HF_OK)
        status = hf__coverage_verify(scene.mine, 0, 0, note, noted, err);
    if (status == HF_OK && (noted[HF__DATA_MISSING].to != 5 || noted[HF__DATA_INCOMPLETE].to != 7 ||
                            noted[HF__DATA_UNCOVERED].to != 8))
        complain("what disagrees is not told", NULL);
    if (status == HF_OK)
        status = hf__coverage_repair(scene.mine, &repair, err);
    if (status == HF_OK && (repair.ranges != 3 || repair.ledgers != 4 || repair.latest != 8))
        complain("the repair says something else", NULL);
    check_coverage(&scene, status, (struct expected){.ranges = {{3, 7}}},
                   (struct expected){.ranges = {{3, 4}, {6, 6}, {8, 8}}});
    end_scene(&scene);
    return status;
}

static hf_status drop_first(hf_network *network, hf_error *err)
{
    hf__partition *list = NULL;
    size_t count = 0;
    hf_status status = hf__partitions_list(network, &list, &count, err);
    if (status == HF_OK && count != 2)
        complain("the partitions are others", NULL);
    if (status == HF_OK)
        status = hf__partition_drop(network, &list[0], err);
    free(list);
    return status;
}

/* They are made and listed, and one is dropped. */
hf_status do_partitions(hf_store *store, hf_error *err)
{
    struct scene scene;
    const int64_t width = HF__PARTITION_LEDGERS;
    hf_error why = {0};
    hf_status status = set_scene(store, &scene, NULL, err);
    bool spared = rungs_spare(true);
    if (hf__tables_install(scene.theirs, &why) != HF_OK)
        complain("the other store cannot make the tables", &why);
    rungs_spare(spared);
    if (status == HF_OK)
        status = hf__partitions_ensure(scene.mine, 0, 2 * width - 1, width, err);
    if (status == HF_OK)
        status = drop_first(scene.mine, err);
    rungs_spare(true);
    if (hf__partitions_ensure(scene.theirs, 0, 2 * width - 1, width, &why) != HF_OK)
        complain("the partitions cannot be made any more", &why);
    rungs_spare(spared);
    end_scene(&scene);
    return status;
}
