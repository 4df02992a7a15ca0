/* The low-level calls are deprecated, but they neither load OpenSSL's configuration nor fetch a
 * provider, which together cost a short-lived process more than its lock. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

#include "lib/keys/keys.h"

uint64_t hf__sha256_head(const unsigned char *bytes, size_t size)
{
    SHA256_CTX context;
    unsigned char digest[SHA256_DIGEST_LENGTH];
    uint64_t head = 0;

    SHA256_Init(&context);
    SHA256_Update(&context, bytes, size);
    SHA256_Final(digest, &context);
    for (int i = 0; i < 8; i++)
        head = head << 8 | digest[i];
    return head;
}
