/*
 * Rows of each format: a place where they are cut is between two of them, and where rows are does
 * not depend on the pieces in which they come. ClickHouse's view is compared in tests/integration.
 */
#include "fuzz.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "programs/append/input/rows_place.h"
#include "programs/append/input/split.c"

static int64_t count_rows(const hf__format *format, const char *bytes, size_t size, size_t piece,
                          hf__row_places *places)
{
    hf__places_init(places, format);
    for (size_t at = 0; at < size; at += piece)
        hf__places_pass(places, bytes + at, at + piece < size ? piece : size - at);
    return atomic_load(&places->rows);
}

static int64_t count_all(const hf__format *format, const char *bytes, size_t size)
{
    hf__row_places places;
    int64_t rows = count_rows(format, bytes, size, size > 0 ? size : 1, &places);

    hf__places_free(&places);
    return rows;
}

static void compare_pieces(const hf__format *format, const char *bytes, size_t size)
{
    hf__row_places whole, single;
    int64_t rows = count_rows(format, bytes, size, size > 0 ? size : 1, &whole);
    int64_t again = count_rows(format, bytes, size, 1, &single);

    require(rows == again, "pieces change the number of rows");
    int64_t last = 0;
    for (int64_t row = 1; row <= rows; row++) {
        size_t source[2] = {0};
        int64_t line[2] = {0};
        bool found = hf__places_find(&whole, row, &source[0], &line[0]);
        require(found == hf__places_find(&single, row, &source[1], &line[1]) && line[0] == line[1],
                "pieces change where a row is");
        require(!found || line[0] >= last, "rows go back");
        last = line[0];
    }
    hf__places_free(&whole);
    hf__places_free(&single);
}

static void check_cut(const hf__format *format, const char *bytes, size_t size)
{
    hf_error err = {0};
    int64_t cut = 0;
    int fd = memfd_create("rows", MFD_CLOEXEC);

    require(fd >= 0 && write(fd, bytes, size) == (ssize_t)size, "no file");
    require(find_cut(format, fd, "rows", (int64_t)size, &cut, &err) == HF_OK, "it cannot be cut");
    close(fd);
    require(cut >= 0 && cut < (int64_t)(size > 0 ? size : 1), "a cut is outside");
    if (cut == 0)
        return;
    require(bytes[cut - 1] == '\n' && cut >= (int64_t)size / 2, "a cut is elsewhere");
    if (format->ends == HF__ENDS_BY_QUOTES)
        require(count_all(format, bytes, (size_t)cut) +
                        count_all(format, bytes + cut, size - (size_t)cut) ==
                    count_all(format, bytes, size),
                "a row was cut");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"JSONEachRow", "CSVWithNames", "TSV"};
    const char *bytes = (const char *)data;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const hf__format *format = NULL;
        require(hf__format_find(names[i], &format, NULL) == HF_OK, "no format");
        compare_pieces(format, bytes, size);
        check_cut(format, bytes, size);
    }
    return 0;
}
