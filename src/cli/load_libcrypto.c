#include "cli/load.h"

#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/md5.h>
#include <openssl/sha.h>

/* clang-format off */
#define LIBCRYPTO_CALLS(ASK, DO) \
    ASK(int, MD5_Init, (MD5_CTX *context), (context)) \
    ASK(int, MD5_Update, (MD5_CTX *context, const void *data, size_t size), \
        (context, data, size)) \
    ASK(int, MD5_Final, (unsigned char *digest, MD5_CTX *context), (digest, context)) \
    ASK(int, SHA1_Init, (SHA_CTX *context), (context)) \
    ASK(int, SHA1_Update, (SHA_CTX *context, const void *data, size_t size), \
        (context, data, size)) \
    ASK(int, SHA1_Final, (unsigned char *digest, SHA_CTX *context), (digest, context)) \
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
