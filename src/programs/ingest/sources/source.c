#include "programs/ingest/sources/source.h"

#include <string.h>

typedef hf_status open_fn(const hf__source_options *options, hf__source **source, hf_error *err);

static const struct {
    const char *prefix;
    open_fn *open;
} kinds[] = {
    {"exec:", hf__source_exec},
    {"generate:", hf__source_generate},
    {"rpc+http://", hf__source_rpc},
    {"rpc+https://", hf__source_rpc},
};

hf_status hf__source_open(const hf__source_options *options, hf__source **source, hf_error *err)
{
    *source = NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strncmp(options->spec, kinds[i].prefix, strlen(kinds[i].prefix)) == 0)
            return kinds[i].open(options, source, err);
    return hf__source_files(options, source, err);
}

void hf__source_close(hf__source *source)
{
    if (source != NULL)
        source->ops->close(source);
}
