#include "cli/load.h"

#include <dlfcn.h>

#include "base/error.h"

static hf_status cannot_load(const char *package, hf_error *err)
{
    hf_status status = hf__fail(err, HF_UNREACHABLE, "cannot load a library: %s", dlerror());

    hf__hint(err, "install it (on Debian the package is %s)", package);
    return status;
}

/* RTLD_LAZY, because most of the library's functions are never called: do not bind them now. */
hf_status load_library(const char *file, const char *package, const struct lazy_call *calls,
                       hf_error *err)
{
    void *library = dlopen(file, RTLD_LAZY | RTLD_LOCAL);

    if (library == NULL)
        return cannot_load(package, err);
    for (; calls->name != NULL; calls++)
        if ((*calls->address = dlsym(library, calls->name)) == NULL)
            return cannot_load(package, err);
    return HF_OK;
}
