#include "cli/notify.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/*
 * "@name" is an abstract socket, "/path" one in the file system. Returns the length of the address,
 * or 0 for anything else.
 */
static socklen_t socket_address(const char *name, struct sockaddr_un *address)
{
    size_t length = strlen(name);

    if ((name[0] != '@' && name[0] != '/') || length >= sizeof address->sun_path)
        return 0;
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(address->sun_path, name, length);
    if (name[0] == '@')
        address->sun_path[0] = '\0';
    else
        length++;
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
}

void notify_service_manager(const char *format, ...)
{
    const char *name = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address;
    char message[1024];
    va_list args;

    socklen_t address_length = name != NULL ? socket_address(name, &address) : 0;
    if (address_length == 0)
        return;
    va_start(args, format);
    int wanted = vsnprintf(message, sizeof message, format, args);
    va_end(args);
    size_t length = wanted < 0 ? 0 : (size_t)wanted;
    if (length >= sizeof message)
        length = sizeof message - 1;

    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    (void)sendto(fd, message, length, MSG_NOSIGNAL, (struct sockaddr *)&address, address_length);
    close(fd);
}
