#include <string.h>

#include "base/hash.h"
#include "programs/top/cell.h"
#include "programs/top/list.h"

enum { BAR_CELLS = 16 };

static const hf__seen_network *network_at(const hf__top *top, size_t row)
{
    return &top->snapshot->networks[row];
}

static hf__value number_of(hf__maybe number, hf__ink ink)
{
    return (hf__value){.number = number.known ? number.value : -1, .ink = ink};
}

static hf__value name(const hf__top *top, size_t row)
{
    return (hf__value){.text = network_at(top, row)->name, .ink = HF__INK_BOLD};
}

static hf__value latest(const hf__top *top, size_t row)
{
    return number_of(network_at(top, row)->status.latest, HF__INK_PLAIN);
}

static hf__value oldest(const hf__top *top, size_t row)
{
    return number_of(network_at(top, row)->status.oldest, HF__INK_DIM);
}

/* To be ahead of what the source said last is no lag. */
static hf__value lag(const hf__top *top, size_t row)
{
    hf__maybe value = network_at(top, row)->lag;

    if (value.known && value.value < 0)
        value.value = 0;
    return number_of(value, value.known && value.value > 0 ? HF__INK_WARNING : HF__INK_GOOD);
}

static hf__value rate(const hf__top *top, size_t row)
{
    double a_second = network_at(top, row)->rate;

    return (hf__value){.number =
                           a_second >= 0 && a_second < 1e12 ? (int64_t)(a_second * 1000) : -1};
}

static hf__value age(const hf__top *top, size_t row)
{
    const hf__network_status *status = &network_at(top, row)->status;

    return (hf__value){.number = status->closed_at[0] != '\0' ? status->age_ms : -1};
}

static hf__value gaps(const hf__top *top, size_t row)
{
    hf__maybe value = network_at(top, row)->status.gaps;

    return number_of(value, value.known && value.value > 0 ? HF__INK_PROBLEM : HF__INK_GOOD);
}

static hf__value missing(const hf__top *top, size_t row)
{
    const hf__network_status *status = &network_at(top, row)->status;

    return (hf__value){.number = status->gaps.known ? status->missing : -1,
                       .ink = status->missing > 0 ? HF__INK_PROBLEM : HF__INK_DIM};
}

static hf__value ingester(const hf__top *top, size_t row)
{
    const char *text = network_at(top, row)->ingester;

    if (network_at(top, row)->problem[0] != '\0')
        return (hf__value){.text = "cannot be read", .ink = HF__INK_PROBLEM};
    return (hf__value){.text = text[0] != '\0' ? text : "none runs",
                       .ink = text[0] != '\0' ? HF__INK_PLAIN : HF__INK_WARNING};
}

static hf__value coverage(const hf__top *top, size_t row)
{
    return (hf__value){.number = network_at(top, row)->status.covered, .ink = HF__INK_GOOD};
}

static void show_coverage(const hf__top *top, size_t row, hf__buf *out)
{
    hf__put_coverage(out, network_at(top, row), BAR_CELLS);
}

static const hf__list_column columns[] = {
    {.title = "NETWORK", .word = "network", .least = 10, .value = name},
    {.title = "LATEST",
     .word = "latest",
     .kind = HF__COUNT,
     .least = 9,
     .rank = 2,
     .descending = true,
     .value = latest},
    {.title = "LAG",
     .word = "lag",
     .kind = HF__COUNT,
     .least = 6,
     .rank = 3,
     .descending = true,
     .value = lag},
    {.title = "RATE",
     .word = "rate",
     .kind = HF__RATE,
     .least = 7,
     .rank = 6,
     .descending = true,
     .value = rate},
    {.title = "AGE",
     .word = "age",
     .kind = HF__AGE,
     .least = 7,
     .rank = 5,
     .descending = true,
     .value = age},
    {.title = "GAPS",
     .word = "gaps",
     .kind = HF__COUNT,
     .least = 6,
     .rank = 1,
     .descending = true,
     .value = gaps},
    {.title = "MISSING",
     .word = "missing",
     .kind = HF__COUNT,
     .least = 9,
     .rank = 4,
     .descending = true,
     .value = missing},
    {.title = "INGESTER",
     .word = "ingester",
     .least = 10,
     .stretches = true,
     .rank = 7,
     .value = ingester},
    {.title = "COVERAGE",
     .is_extra = true,
     .word = "covered",
     .kind = HF__COUNT,
     .least = BAR_CELLS,
     .rank = 8,
     .descending = true,
     .value = coverage,
     .show = show_coverage},
    {.title = "OLDEST",
     .is_extra = true,
     .word = "oldest",
     .kind = HF__COUNT,
     .least = 9,
     .rank = 9,
     .value = oldest},
    {0},
};

static size_t count(const hf__top *top)
{
    return top->snapshot->network_count;
}

static bool matches(const hf__top *top, size_t row, const char *needle)
{
    return hf__has(network_at(top, row)->name, needle) ||
           hf__has(network_at(top, row)->ingester, needle);
}

/* A store has few networks: 64 bits of hash tell their names apart. */
static hf__row_id id(const hf__top *top, size_t row)
{
    const char *name = network_at(top, row)->name;

    return (hf__row_id){.a = (int64_t)hf__hash_bytes(name, strlen(name))};
}

static void copy(const hf__top *top, size_t row, hf__buf *out)
{
    hf__buf_puts(out, network_at(top, row)->name);
}

const hf__list hf__list_ingest = {
    .word = "ingest",
    .title = "Ingest",
    .columns = columns,
    .sort = 0,
    .empty = "No network is ingested into this store.",
    .count = count,
    .figure = count,
    .matches = matches,
    .id = id,
    .copy = copy,
};
