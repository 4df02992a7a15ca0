/*
 * A cluster. A staging table, its parts and an orphan are on one replica, so each replica is
 * contacted by its own address, over HTTP at the port of the target. A statement to the whole
 * cluster would need ZooKeeper or the passwords of other users, and would reach only one replica of
 * each shard.
 */
#include <stdlib.h>
#include <string.h>

#include "programs/append/staging.h"

static hf_status ask_replicas(hf__work *work, hf__grid *hosts, hf_error *err)
{
    hf__buf sql = {0};

    hf__buf_puts(&sql, "SELECT DISTINCT host_name FROM system.clusters WHERE cluster = ");
    hf__quote_text(&sql, work->name.cluster);
    hf__buf_puts(&sql, " ORDER BY host_name");
    const hf__statement ask = {.what = "read system.clusters", .gives_way = true};
    return hf__target_ask(work->target, &ask, &sql, hosts, err);
}

/* An orphan may be running on a replica that does not answer, so this is a failure. */
static hf_status explain(hf__work *work, const char *host, hf_error *err)
{
    hf_error plain = *err;
    hf_status status =
        hf__fail(err, plain.code, "replica %s of the cluster %s is not to be reached by itself: %s",
                 host, work->name.cluster, plain.message);

    hf__hint(err, "every replica must answer over HTTP at the port of --to; one that is gone for "
                  "good is taken out of remote_servers");
    return status;
}

static hf_status add_replica(hf__work *work, const char *host, hf_error *err)
{
    hf__grid who = {0};
    hf__target *replica = NULL;
    hf_status status = work->target->ops->open_sibling(work->target, host, &replica, err);

    if (status != HF_OK)
        return status;
    work->replicas[work->replica_count++] = replica;
    status = hf__clickhouse_ask(replica, &who, err);
    hf__grid_free(&who);
    return status == HF_OK ? HF_OK : explain(work, host, err);
}

static hf_status refuse_stranger(hf__work *work, bool is_balanced, hf_error *err)
{
    if (!is_balanced) { /* then the name only tells equal tables of two clusters apart */
        hf__work_note(work,
                      "%s has no cluster %s in its remote_servers: no other server is looked at",
                      work->target->name, work->name.cluster);
        return HF_OK;
    }
    hf_status status =
        hf__fail(err, HF_CONFIG, "%s leads to several servers, which have no cluster %s",
                 work->target->name, work->name.cluster);
    hf__hint(err, "give a name of system.clusters, or the address of one server");
    return status;
}

/* The replica that the target leads to, or the first one: every run should choose the same. */
static hf_status choose(hf__work *work, bool is_balanced, hf_error *err)
{
    hf__grid ours = {0};
    hf__target *chosen = is_balanced ? work->replicas[0] : NULL;
    hf_status status = hf__clickhouse_ask(work->target, &ours, err);

    for (size_t i = 0; i < work->replica_count && chosen == NULL && status == HF_OK; i++) {
        hf__grid who = {0};
        status = hf__clickhouse_ask(work->replicas[i], &who, err);
        if (status == HF_OK && hf__clickhouse_is_same(&ours, &who))
            chosen = work->replicas[i];
        hf__grid_free(&who);
    }
    hf__grid_free(&ours);
    if (status == HF_OK && chosen == NULL) {
        status = hf__fail(err, HF_CONFIG, "%s is no replica of the cluster %s", work->target->name,
                          work->name.cluster);
        hf__hint(err, "give the address of one of them");
    }
    if (status == HF_OK) {
        work->given = work->target;
        work->target = chosen;
    }
    return status;
}

hf_status hf__cluster_open(hf__work *work, bool is_balanced, hf_error *err)
{
    hf__grid hosts = {0};
    hf_status status = ask_replicas(work, &hosts, err);

    if (status == HF_OK && hosts.rows == 0) {
        hf__grid_free(&hosts);
        return refuse_stranger(work, is_balanced, err);
    }
    work->replicas = calloc(hosts.rows + 1, sizeof(hf__target *));
    if (status == HF_OK && work->replicas == NULL)
        status = hf__no_memory(err);
    for (size_t i = 0; i < hosts.rows && status == HF_OK; i++)
        status = add_replica(work, hf__grid_at(&hosts, i, 0), err);
    hf__grid_free(&hosts);
    return status == HF_OK ? choose(work, is_balanced, err) : status;
}

void hf__cluster_close(hf__work *work)
{
    if (work->given != NULL)
        work->target = work->given;
    for (size_t i = 0; i < work->replica_count; i++)
        hf__target_close(work->replicas[i]);
    free(work->replicas);
    work->replicas = NULL;
    work->replica_count = 0;
}

hf__target *hf__cluster_at(const hf__work *work, size_t i)
{
    if (work->replica_count == 0)
        return i == 0 ? work->target : NULL;
    return i < work->replica_count ? work->replicas[i] : NULL;
}

hf_status hf__cluster_follow(hf__work *work, const char *id, const char *known, hf_error *err)
{
    hf__target *used = work->target;
    hf_status status = HF_OK;
    char found[128] = "";

    for (size_t i = 0; i < work->replica_count && status == HF_OK && found[0] == '\0'; i++) {
        work->target = work->replicas[i];
        status = hf__staging_find(work, id, known, found, err);
    }
    if (status != HF_OK || found[0] == '\0')
        work->target = used;
    return status;
}
