/* systemd's notification protocol; without NOTIFY_SOCKET nothing happens. */
#ifndef HF_CLI_NOTIFY_H
#define HF_CLI_NOTIFY_H

/* Sends "READY=1\nSTATUS=…" and the like. Failures are ignored, as sd_notify's callers do. */
void notify_service_manager(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
