/*
 * How we split what comes on standard input, one answer for each text; a text ends with a NUL.
 *
 *   split_driver sql     the statements, as a JSON array, or "null" for a script that is refused
 *   split_driver csv     where rows are cut in two, and how many there are: "17 4"
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/json.h"
#include "programs/append/input/rows_place.h"
#include "programs/append/input/split.c"
#include "programs/holdfast/sql_script.h"

static void split_sql(const char *text, size_t size)
{
    struct sql_script script;
    hf__json out = {0};
    hf_error err = {0};
    hf_status status = sql_script_read(text, size, false, NULL, 0, &script, &err);

    hf__json_begin_array(&out, NULL);
    for (size_t i = 0; i < script.count; i++)
        hf__json_put_string(&out, NULL, script.statements[i].sql);
    hf__json_end_array(&out);
    puts(status == HF_OK ? out.text.data : "null");
    sql_script_free(&script);
    hf__buf_free(&out.text);
}

static void split_csv(const char *text, size_t size)
{
    const hf__format *format = NULL;
    hf__row_places places;
    hf_error err = {0};
    int64_t cut = 0;
    int fd = memfd_create("rows", MFD_CLOEXEC);

    if (hf__format_find("CSVWithNames", &format, &err) != HF_OK || fd < 0 ||
        write(fd, text, size) != (ssize_t)size ||
        find_cut(format, fd, "rows", (int64_t)size, &cut, &err) != HF_OK)
        abort();
    close(fd);
    hf__places_init(&places, format);
    hf__places_expect_header(&places);
    hf__places_pass(&places, text, size);
    printf("%lld %lld\n", (long long)cut, (long long)atomic_load(&places.rows));
    hf__places_free(&places);
}

int main(int argc, char **argv)
{
    char *text = NULL;
    size_t capacity = 0;
    ssize_t size;

    while (argc == 2 && (size = getdelim(&text, &capacity, '\0', stdin)) > 0) {
        size_t length = strnlen(text, (size_t)size);
        if (strcmp(argv[1], "sql") == 0)
            split_sql(text, length);
        else
            split_csv(text, length);
    }
    free(text);
    return argc == 2 ? 0 : 2;
}
