#include "programs/append/format.h"

#include <string.h>
#include <strings.h>

#include "base/text.h"

/*
 * A stream may stop anywhere, so what aborts it must be wrong after every byte of every table's rows: after a
 * line's end, inside of a value (where a text column takes nearly all) and inside of quotes. Two lines of
 * different width are: one of them is no row. In CSV a quote between them ends a quoted value wrongly.
 */
#define TABS "\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t"
#define MANY_TABS TABS TABS TABS TABS TABS TABS TABS TABS
#define COMMAS ",,,,,,,,,,,,,,,,"
#define MANY_COMMAS COMMAS COMMAS COMMAS COMMAS COMMAS COMMAS COMMAS COMMAS

static const char bad_json[] = "\n\"holdfast: stream aborted\"\n";
static const char bad_csv[] = "\nholdfast: stream aborted" MANY_COMMAS "\n\"x\n," MANY_COMMAS "\n";
static const char bad_tsv[] = "\nholdfast: stream aborted" MANY_TABS "\n\t" MANY_TABS "\n";
/* Numbers that no block of columns begins with. */
static const char bad_native[] = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff";

static const hf__format formats[] = {
    {"JSONEachRow", true, false, HF__ENDS_BY_BRACES, bad_json, sizeof bad_json - 1},
    {"CSVWithNames", true, true, HF__ENDS_BY_QUOTES, bad_csv, sizeof bad_csv - 1},
    {"TSV", true, false, HF__ENDS_BY_LINE, bad_tsv, sizeof bad_tsv - 1},
    {"Native", false, false, HF__ENDS_UNKNOWN, bad_native, sizeof bad_native - 1},
};

hf_status hf__format_find(const char *name, const hf__format **format, hf_error *err)
{
    char shown[64];

    *format = &formats[0];
    if (name == NULL)
        return HF_OK;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcasecmp(formats[i].name, name) == 0) {
            *format = &formats[i];
            return HF_OK;
        }
    hf_status status = hf__fail(err, HF_INVALID, "the format '%s' is not known",
                                hf__show(shown, sizeof shown, name, strlen(name)));
    hf__hint(err, "one of JSONEachRow, CSVWithNames, TSV, Native");
    return status;
}
