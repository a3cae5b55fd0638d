/* Passes a command to the user's command server, as Mercurial's chg does: arguments, environment, directory, umask,
 * signal settings and descriptors go over a unix socket to a warm process, which forks and runs the command while this
 * program forwards signals and waits for the status. In any unusual case the command runs cold, as if there were no
 * server. The other side is coder/cli/command_server/; wire format: `struct request`, then texts ended by zeroes.
 *
 * A server is for one identity: everything that a process inherits and cannot transfer (user, namespaces,
 * limits, locale, configuration). The socket is named after it, and the server compares it in full.
 */
#define _GNU_SOURCE
#include "command_client.h"

#ifndef SYS_close_range /* headers older than Linux 5.9; the number is the same everywhere */
#define SYS_close_range 436
#endif

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAGIC "CODERCS2"
#define MOST_DESCRIPTORS 64
#define PATIENCE_SECONDS 2      /* for the server to accept the command; afterwards there is no limit */
#define START_DELAY_MS 2000     /* a first command that takes longer starts a server concurrently */
#define IDENTITY_SIZE 16384
#ifndef RUNTIME_ROOT /* tests have one of their own */
#define RUNTIME_ROOT "/run/user"
#endif

extern char **environ;

struct request {
    char magic[8];
    uint32_t size, mask, descriptors, arguments, variables, unused;
    uint64_t ignored, blocked;
};
struct report {
    char kind; /* R: ready, pid follows; C: run it cold; X: exit code; K: killed by signal */
    char unused[3];
    int32_t value;
};

/* First words of commands that run long or start programs on the terminal; NEVER_SERVED in
 * coder/cli/command_server/served.py is the same list. */
static const char *const NEVER_SERVED[] = {
    "agent", "completion", "dotfiles", "gitssh", "login", "open", "provisioner", "provisionerd", "provisioners",
    "server", "terraform-provider", "workspace-proxy", "wsproxy", NULL,
};
/* Global flags whose value is a separate word. */
static const char *const VALUED[] = {
    "--url", "--token", "--global-config", "--header", "--header-command", "--client-tls-ca-file",
    "--client-tls-cert-file", "--client-tls-key-file", NULL,
};
/* Variables that matter at process start, by name or prefix: part of the identity, and a server's only environment. */
static const char *const AT_START[] = {
    "HOME", "LANG", "LANGUAGE", "LC_*", "LD_*", "XDG_CONFIG_HOME", "CODER_CONFIG_DIR", "PYTHON*", "GLIBC_TUNABLES",
    "MALLOC_*", "OPENSSL_*", "SSL_CERT_*", NULL,
};
static const char *const ALSO_PASSED[] = {"PATH",   "_PYI_*", "USER",  "LOGNAME",
                                         "SHELL",  "TMPDIR", "XDG_*", "CODER_BINARY_CACHE", NULL};

static char identity[IDENTITY_SIZE];
static char socket_path[sizeof(((struct sockaddr_un *)0)->sun_path)];
static volatile sig_atomic_t worker, last_fatal;

static int is_one_of(const char *word, size_t length, const char *const *list) {
    for (; *list; list++) {
        size_t wanted = strlen(*list);
        if ((*list)[wanted - 1] == '*' ? length >= wanted - 1 && !strncmp(word, *list, wanted - 1)
                                       : length == wanted && !strncmp(word, *list, wanted))
            return 1;
    }
    return 0;
}

static int is_served(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] != '-') return !is_one_of(argv[i], strlen(argv[i]), NEVER_SERVED);
        if (is_one_of(argv[i], strlen(argv[i]), VALUED)) i++;
    }
    return 1;
}

static int is_private_directory(const char *path) {
    struct stat info;
    return !lstat(path, &info) && S_ISDIR(info.st_mode) && info.st_uid == geteuid() && !(info.st_mode & 077);
}

/* ---- identity */

static size_t used;

__attribute__((format(printf, 1, 2))) static void add(const char *format, ...) {
    va_list values;
    va_start(values, format);
    int wrote = vsnprintf(identity + used, sizeof identity - used, format, values);
    va_end(values);
    used += wrote > 0 ? (size_t)wrote : 0;
    if (used >= sizeof identity) used = sizeof identity; /* too much: see find_server */
}

static uint64_t signal_set(const char *status, const char *name) {
    const char *found = strstr(status, name);
    return found ? strtoull(found + strlen(name), NULL, 16) : 0;
}

static int read_status(char *status, size_t size) {
    int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    ssize_t got = read(file, status, size - 1);
    close(file);
    status[got > 0 ? got : 0] = 0;
    return got > 0;
}

static int compare(const void *left, const void *right) { return strcmp(*(char *const *)left, *(char *const *)right); }

/* Sorted, because shells pass variables in different orders. */
static int add_environment(void) {
    char *found[256];
    size_t count = 0;
    for (char **variable = environ; *variable; variable++) {
        if (!is_one_of(*variable, strcspn(*variable, "="), AT_START)) continue;
        if (count == sizeof found / sizeof *found) return 0;
        found[count++] = *variable;
    }
    qsort(found, count, sizeof *found, compare);
    for (size_t i = 0; i < count; i++) add("%s\n", found[i]);
    return 1;
}

static int describe(const char *key, const char *status) {
    static const char *const lines[] = {"Uid:*", "Gid:*", "Groups:*", "Cap*", "NoNewPrivs:*", "Seccomp*", "Cpus_allowed:*", NULL};
    static const char *const spaces[] = {"mnt", "net", "pid", "user", "uts", "ipc", "time", NULL};
    struct stat info;
    struct rlimit limit;
    char path[64];
    used = 0;
    add("key %s\n", key);
    for (const char *line = status; *line;) {
        size_t length = strcspn(line, "\n");
        if (is_one_of(line, length, lines)) add("%.*s\n", (int)length, line);
        line += length + (line[length] == '\n');
    }
    for (const char *const *space = spaces; *space; space++) {
        snprintf(path, sizeof path, "/proc/self/ns/%s", *space);
        if (!stat(path, &info)) add("%s %llu\n", *space, (unsigned long long)info.st_ino);
    }
    if (stat("/", &info)) return 0;
    unsigned long long device = info.st_dev, inode = info.st_ino; /* 64 bits wide also on 32 bit processors */
    add("root %llu %llu nice %d\n", device, inode, getpriority(PRIO_PROCESS, 0));
    struct utsname host;
    if (!uname(&host)) add("host %s\n", host.nodename); /* a home directory can be several machines' */
    for (int kind = 0; kind < (int)RLIMIT_NLIMITS; kind++)
        if (!getrlimit(kind, &limit))
            add("limit %d %llx %llx\n", kind, (unsigned long long)limit.rlim_cur, (unsigned long long)limit.rlim_max);
    return add_environment() && used < sizeof identity;
}

static uint64_t digest(const char *text) { /* FNV-1a names the socket; the server compares the whole text */
    uint64_t value = 14695981039346656037u;
    for (; *text; text++) value = (value ^ (unsigned char)*text) * 1099511628211u;
    return value;
}

static const char *variable(const char *name) {
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* The configuration directory, as coder/cli/core/session.py finds it; 0 without one, or for a longer path than a socket has. */
static int find_configuration(char *folder, size_t size) {
    const char *chosen = variable("CODER_CONFIG_DIR"), *base = variable("XDG_CONFIG_HOME"), *home = variable("HOME");
    int wrote = chosen ? snprintf(folder, size, "%s", chosen)
                : base ? snprintf(folder, size, "%s/coderv2", base)
                       : snprintf(folder, size, "%s/.config/coderv2", home ? home : "");
    return wrote > 0 && wrote < (int)size && folder[0] == '/';
}

/* The private directory of sockets: the runtime directory's, else one in the configuration directory if that exists.
 * Many systems have no runtime directory: containers, `su`, cron, systems without logind. 0 if there is none. */
static int find_folder(char *folder, size_t size) {
    const char *runtime = variable("XDG_RUNTIME_DIR");
    char standard[sizeof socket_path], configuration[sizeof socket_path];
    struct stat info;
    snprintf(standard, sizeof standard, "%.70s/%ld", RUNTIME_ROOT, (long)geteuid());
    if (runtime || is_private_directory(standard)) {
        if (!runtime) runtime = standard;
        if (runtime[0] != '/' || !is_private_directory(runtime)) return 0;
        if (snprintf(folder, size, "%s/coder", runtime) >= (int)size - 32) return 0;
    } else if (!find_configuration(configuration, sizeof configuration) || stat(configuration, &info) ||
               info.st_uid != geteuid() || info.st_mode & 022 || /* sudo keeps HOME, another user's */
               snprintf(folder, size, "%s/run", configuration) >= (int)size - 32)
        return 0;
    return (!mkdir(folder, 0700) || errno == EEXIST) && is_private_directory(folder);
}

/* The socket's path for this process; 0 if no server is allowed. */
static int find_server(const char *key, const char *status) {
    const char *refused = getenv("CODER_NO_COMMAND_SERVER");
    char folder[sizeof socket_path];
    if (refused && *refused && strcmp(refused, "0") && strcmp(refused, "false")) return 0;
    if (getuid() != geteuid() || getgid() != getegid()) return 0;
    if (!find_folder(folder, sizeof folder)) return 0;
    if (!describe(key, status)) return 0;
    snprintf(socket_path, sizeof socket_path, "%.70s/%016llx.sock", folder, (unsigned long long)digest(identity));
    return strlen(folder) <= 70;
}

/* ---- handover */

static int dial(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval patience = {.tv_sec = PATIENCE_SECONDS};
    struct ucred peer;
    socklen_t length = sizeof peer;
    int channel = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (channel < 0) return -1;
    strcpy(address.sun_path, socket_path);
    setsockopt(channel, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    setsockopt(channel, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (!connect(channel, (struct sockaddr *)&address, sizeof address) &&
        !getsockopt(channel, SOL_SOCKET, SO_PEERCRED, &peer, &length) && peer.uid == geteuid())
        return channel;
    close(channel);
    return -1;
}

/* Descriptors the command would inherit; -1 for too many, a closed standard one, or a terminal of another session. */
static int inherited(int *found) {
    int count = 0, standard = 0;
    DIR *listing = opendir("/proc/self/fd");
    if (!listing) return -1;
    for (struct dirent *entry; (entry = readdir(listing));) {
        int number = atoi(entry->d_name), flags;
        if (entry->d_name[0] == '.' || number == dirfd(listing)) continue;
        if ((flags = fcntl(number, F_GETFD)) < 0 || flags & FD_CLOEXEC) continue;
        if (count == MOST_DESCRIPTORS) {
            count = -1;
            break;
        }
        standard += number <= 2;
        found[count++] = number;
    }
    closedir(listing);
    if (count < 0 || standard != 3) return -1;
    for (int number = 0; number <= 2; number++) { /* only the kernel can stop a background process that reads */
        pid_t front = isatty(number) ? tcgetpgrp(number) : -1;
        if (front >= 0 && front != getpgrp()) return -1;
    }
    return count;
}

static int send_all(int channel, const char *data, size_t size) {
    while (size) {
        ssize_t sent = send(channel, data, size, MSG_NOSIGNAL);
        if (sent <= 0) return 0;
        data += sent;
        size -= (size_t)sent;
    }
    return 1;
}

static char *append(char *at, const void *data, size_t size) { return (char *)memcpy(at, data, size) + size; }

/* `watched` is passed too: the read end of a pipe whose write end only this process has. */
static int send_request(int channel, int watched, int argc, char **argv, const char *status) {
    int found[MOST_DESCRIPTORS + 2], count = inherited(found), variables = 0;
    char control[CMSG_SPACE(sizeof found)] = {0};
    if (count < 0) return 0;
    int folder = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return 0;
    size_t size = strlen(identity) + 1 + sizeof(uint32_t) * (size_t)count;
    for (int i = 0; i < argc; i++) size += strlen(argv[i]) + 1;
    for (char **variable = environ; *variable; variable++, variables++) size += strlen(*variable) + 1;
    char *body = malloc(size), *at = body;
    if (!body || size > 0x7fffffff) return 0;
    at = append(at, identity, strlen(identity) + 1);
    for (int i = 0; i < count; i++) at = append(at, &(uint32_t){(uint32_t)found[i]}, sizeof(uint32_t));
    for (int i = 0; i < argc; i++) at = append(at, argv[i], strlen(argv[i]) + 1);
    for (char **variable = environ; *variable; variable++) at = append(at, *variable, strlen(*variable) + 1);
    mode_t mask = umask(0);
    umask(mask);
    struct request request = {
        .magic = MAGIC, .size = (uint32_t)size, .mask = mask, .descriptors = (uint32_t)count, .arguments = (uint32_t)argc,
        .variables = (uint32_t)variables, .ignored = signal_set(status, "SigIgn:"), .blocked = signal_set(status, "SigBlk:"),
    };
    struct iovec part = {.iov_base = &request, .iov_len = sizeof request};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control};
    found[count++] = folder;
    found[count++] = watched;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)count);
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)count);
    memcpy(CMSG_DATA(rights), found, sizeof(int) * (size_t)count);
    int sent = sendmsg(channel, &message, MSG_NOSIGNAL) == (ssize_t)sizeof request && send_all(channel, body, size);
    close(folder);
    free(body);
    return sent;
}

/* ---- while the command runs */

/* A terminal signals whole jobs, a program a single process. */
static void forward(int number, siginfo_t *info, void *context) {
    int kept = errno;
    (void)context;
    if (number == SIGINT || number == SIGTERM || number == SIGQUIT || number == SIGHUP) last_fatal = number;
    kill(info->si_code > 0 ? -worker : worker, number);
    errno = kept;
}

static void on_stop(int number, siginfo_t *info, void *context);

static void listen_to(int number, void (*handler)(int, siginfo_t *, void *)) {
    struct sigaction now, wanted = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};
    if (!sigaction(number, NULL, &now) && now.sa_handler != SIG_IGN) sigaction(number, &wanted, NULL);
}

static int is_stopped(void) {
    char path[320], state[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)worker);
    DIR *threads = opendir(path); /* in a signal handler, which can interrupt only a wait: see wait_for_end */
    int all = 1;
    if (!threads) return 1;
    for (struct dirent *entry; all && (entry = readdir(threads));) {
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "/proc/%d/task/%s/stat", (int)worker, entry->d_name);
        int file = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t got = file < 0 ? -1 : read(file, state, sizeof state - 1);
        if (file >= 0) close(file);
        state[got > 0 ? got : 0] = 0;
        char *name_end = strrchr(state, ')');
        all = !name_end || name_end[2] == 'T' || name_end[2] == 't' || name_end[2] == 'Z' || name_end[2] == 'X';
    }
    closedir(threads);
    return all;
}

/* The command stops first, then this program as the shell expects; SIGCONT reaches both. */
static void on_stop(int number, siginfo_t *info, void *context) {
    struct sigaction usual = {.sa_handler = SIG_DFL};
    sigset_t one;
    int kept = errno;
    (void)info, (void)context;
    kill(-worker, SIGSTOP);
    /* A thread that returns from a read would still consume the shell's next line. */
    for (int i = 0; i < 1000 && !is_stopped(); i++) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    sigaction(number, &usual, NULL);
    sigemptyset(&one);
    sigaddset(&one, number);
    raise(number);
    sigprocmask(SIG_UNBLOCK, &one, NULL); /* the process stops here */
    kill(-worker, SIGCONT);
    listen_to(number, on_stop);
    errno = kept;
}

static void die_of(int number) {
    struct rlimit none = {0, 0};
    struct sigaction usual = {.sa_handler = SIG_DFL};
    sigset_t one;
    setrlimit(RLIMIT_CORE, &none); /* the core would be this program's */
    sigaction(number, &usual, NULL);
    sigemptyset(&one);
    sigaddset(&one, number);
    sigprocmask(SIG_UNBLOCK, &one, NULL);
    raise(number);
    _exit(128 + number);
}

static int receive(int channel, struct report *report) {
    ssize_t got;
    do got = recv(channel, report, sizeof *report, MSG_WAITALL);
    while (got < 0 && errno == EINTR);
    return got == (ssize_t)sizeof *report;
}

static void wait_for_end(int channel) {
    static const int passed_on[] = {SIGINT, SIGTERM, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGWINCH, SIGCONT};
    struct report report;
    struct timeval forever = {0};
    for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; i++) listen_to(passed_on[i], forward);
    listen_to(SIGTSTP, on_stop);
    setsockopt(channel, SOL_SOCKET, SO_RCVTIMEO, &forever, sizeof forever);
    if (send(channel, "G", 1, MSG_NOSIGNAL) != 1) report.kind = 0;
    else if (!receive(channel, &report)) report.kind = 0;
    if (report.kind == 'X') _exit(report.value);
    if (report.kind == 'K') die_of(report.value);
    if (last_fatal) die_of(last_fatal);
    fprintf(stderr, "coder: the process that ran this command was killed\n");
    _exit(255);
}

int run_warm(const char *key, int argc, char **argv) {
    static char status[8192];
    struct report report;
    int life[2];
    if (!is_served(argc, argv) || !read_status(status, sizeof status) || !find_server(key, status)) return 0;
    int channel = dial();
    if (channel < 0) return 1;
    if (!pipe2(life, O_CLOEXEC)) {
        int sent = send_request(channel, life[0], argc, argv, status);
        close(life[0]);
        if (sent && receive(channel, &report) && report.kind == 'R' && report.value > 1) {
            worker = report.value;
            wait_for_end(channel);
        }
        close(life[1]);
    }
    close(channel); /* a worker without a start message does nothing */
    return 0;
}

/* ---- starting a server */

static void become_server(const char *program, program_starter *start, int parent) {
    char lock[sizeof socket_path + 8], number[16];
    char *passed[256], *argv[] = {(char *)"coder", (char *)"command-server", NULL};
    int count = 0, null = open("/dev/null", O_RDWR);
    struct pollfd ended = {.fd = parent, .events = POLLIN};
    setsid();
    umask(077);
    if (chdir("/")) _exit(0);
    for (int i = 0; i <= 2; i++) dup2(null, i);
    if (parent >= 0) poll(&ended, 1, START_DELAY_MS);
    snprintf(lock, sizeof lock, "%s.lock", socket_path);
    int held = open(lock, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (held < 0 || flock(held, LOCK_EX | LOCK_NB)) _exit(0); /* a server exists or is starting */
    if (held != 3) dup2(held, 3);
    else fcntl(held, F_SETFD, 0);
    syscall(SYS_close_range, 4, ~0u, 0);
    for (char **variable = environ; *variable && count < 240; variable++) {
        size_t length = strcspn(*variable, "=");
        if (is_one_of(*variable, length, AT_START) || is_one_of(*variable, length, ALSO_PASSED))
            passed[count++] = *variable;
    }
    static char text[IDENTITY_SIZE + 32], path[sizeof socket_path + 32];
    snprintf(text, sizeof text, "CODER_COMMAND_SERVER_IDENTITY=%s", identity);
    snprintf(path, sizeof path, "CODER_COMMAND_SERVER_SOCKET=%s", socket_path);
    snprintf(number, sizeof number, "%d", 3);
    passed[count++] = text;
    passed[count++] = path;
    passed[count] = NULL;
    start(program, argv, passed);
    _exit(0);
}

void start_command_server(const char *program, program_starter *start) {
    int parent = (int)syscall(SYS_pidfd_open, getpid(), 0);
    pid_t child = fork();
    if (!child) {
        /* Orphaned: the program must not find a child it did not start. */
        if (!fork()) become_server(program, start, parent);
        _exit(0);
    }
    if (child > 0) waitpid(child, NULL, 0);
    if (parent >= 0) close(parent);
}
