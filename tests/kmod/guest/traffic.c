/* traffic ALGORITHM MILLISECONDS: one connection over loopback, steered by that congestion control; says how its window
 * went. With "hold" it only opens the connection and keeps it until its input ends. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static unsigned window_of(int line)
{
    struct tcp_info info;
    socklen_t size = sizeof info;

    memset(&info, 0, sizeof info);
    getsockopt(line, IPPROTO_TCP, TCP_INFO, &info, &size);
    return info.tcpi_snd_cwnd;
}

static void drain(int listener)
{
    static char bytes[1 << 16];
    int line = accept(listener, 0, 0);

    while (read(line, bytes, sizeof bytes) > 0) {
    }
    _exit(0);
}

int main(int argc, char **argv)
{
    static char bytes[1 << 15];
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof where;
    int listener = socket(AF_INET, SOCK_STREAM, 0), line = socket(AF_INET, SOCK_STREAM, 0);
    unsigned first, least = ~0u, most = 0, window = 0;
    long total = 0, end, changes = 0;
    pid_t reader;

    if (argc < 3 || setsockopt(line, IPPROTO_TCP, TCP_CONGESTION, argv[1], (socklen_t)strlen(argv[1])) != 0) {
        perror("congestion control");
        return 2;
    }
    bind(listener, (struct sockaddr *)&where, sizeof where);
    listen(listener, 1);
    getsockname(listener, (struct sockaddr *)&where, &size);
    reader = fork();
    if (reader == 0) {
        close(line); /* or it would stay open when the other process closes it */
        drain(listener);
    }
    if (connect(line, (struct sockaddr *)&where, sizeof where) != 0) {
        perror("connect");
        return 2;
    }
    first = window_of(line);
    if (strcmp(argv[2], "hold") == 0) {
        struct pollfd forever = {-1, 0, 0};

        write(line, bytes, 1000);
        poll(&forever, 1, 3000);
        close(line);
        waitpid(reader, 0, 0);
        return 0;
    }
    end = now_ms() + atol(argv[2]);
    while (now_ms() < end) {
        unsigned before = window;
        ssize_t sent = write(line, bytes, sizeof bytes);

        if (sent <= 0) {
            break;
        }
        total += sent;
        window = window_of(line);
        changes += window != before;
        least = window < least ? window : least;
        most = window > most ? window : most;
    }
    printf("traffic: %s first %u last %u least %u most %u changes %ld bytes %ld\n", argv[1], first, window, least, most,
           changes, total);
    close(line);
    waitpid(reader, 0, 0);
    return 0;
}
