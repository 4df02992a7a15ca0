#ifndef HF_CLI_REDACT_H
#define HF_CLI_REDACT_H

/*
 * A copy of text with *** for whatever may be a password: in scheme://user:password@host, in a
 * password=… parameter and in a conninfo's password = '…'. The caller frees it; NULL without memory.
 */
char *redact_passwords(const char *text);

#endif
