/* The notification protocol of systemd. */
#ifndef HF_CLI_NOTIFY_H
#define HF_CLI_NOTIFY_H

/*
 * Sends a message such as "READY=1\nSTATUS=…", cut to 1023 bytes. Without NOTIFY_SOCKET it does
 * nothing. Failures are ignored, as callers of sd_notify do.
 */
void notify_service_manager(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
