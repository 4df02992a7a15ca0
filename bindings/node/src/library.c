/* Finds libholdfast: $HOLDFAST_LIBRARY, or by its name, as the system's linker does. */
#include "library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define SONAME "libholdfast.so.0"

struct hfn_library hf;

static char problem[1024]; /* "": it is loaded */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/*
 * Official builds of Node export an OpenSSL of their own, which libpq would be bound to instead of
 * the one that it was built for. A sanitizer cannot have its malloc bound past it, and needs none
 * of this.
 */
#if defined(__SANITIZE_ADDRESS__)
#define OWN_LIBRARIES_FIRST 0
#else
#define OWN_LIBRARIES_FIRST RTLD_DEEPBIND
#endif

static void parse_version(const char *text, unsigned parts[3])
{
    for (int i = 0; i < 3; i++) {
        char *end;
        parts[i] = (unsigned)strtoul(text, &end, 10);
        text = *end == '.' ? end + 1 : end;
    }
}

static bool is_older(const char *version, const char *needed)
{
    unsigned has[3], needs[3];
    parse_version(version, has);
    parse_version(needed, needs);
    for (int i = 0; i < 3; i++)
        if (has[i] != needs[i])
            return has[i] < needs[i];
    return false;
}

static void load(void)
{
    const char *name = getenv("HOLDFAST_LIBRARY");
    if (name == NULL || name[0] == '\0')
        name = SONAME;
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE | OWN_LIBRARIES_FIRST);
    if (library == NULL) {
        (void)snprintf(
            problem, sizeof problem,
            "cannot load libholdfast " HF_VERSION " or newer: %s; install Holdfast "
            "(make install, then ldconfig), or set HOLDFAST_LIBRARY to the path of " SONAME,
            dlerror());
        return;
    }
    const char *missing = NULL;
#define X(name)                                                                                    \
    *(void **)&hf.name = dlsym(library, "hf_" #name);                                              \
    if (hf.name == NULL && missing == NULL)                                                        \
        missing = "hf_" #name;
    HFN_FUNCTIONS(X)
#undef X
    const char *version = hf.version ? hf.version() : "?";
    if (missing != NULL || is_older(version, HF_VERSION))
        (void)snprintf(problem, sizeof problem,
                       "%s is libholdfast %s, which is too old: it needs " HF_VERSION
                       " or newer%s%s; install that one",
                       name, version, missing ? ", with " : "", missing ? missing : "");
}

bool hfn_load_library(const char **why)
{
    pthread_once(&once, load);
    *why = problem;
    return problem[0] == '\0';
}
