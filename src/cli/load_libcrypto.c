#include "cli/load.h"

#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

/* clang-format off */
#define LIBCRYPTO_CALLS(ASK, DO) \
    ASK(int, SHA256_Init, (SHA256_CTX *context), (context)) \
    ASK(int, SHA256_Update, (SHA256_CTX *context, const void *data, size_t size), \
        (context, data, size)) \
    ASK(int, SHA256_Final, (unsigned char *digest, SHA256_CTX *context), (digest, context))
/* clang-format on */

LAZY_LIBRARY(LIBCRYPTO_CALLS)

hf_status load_libcrypto(hf_error *err)
{
    return lazy.SHA256_Init ? HF_OK : load_library("libcrypto.so.3", "libssl3", lazy_calls, err);
}
