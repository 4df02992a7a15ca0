/* What the fuzzers share. An answer that contradicts another one ends the program. */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void require(bool is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "%s: %s\n", program_invocation_short_name, what);
    abort();
}

#endif
