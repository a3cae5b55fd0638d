/* The system in the launcher's way: linked in front of the C library (ld --wrap=NAME), it lets the FAULT_AT-th call fail
 * with FAULT_ERRNO, or kills the process before it when that is 0. FAULT_TIME is what the clock says; with FAULT_COUNT the
 * number of calls is said when the program is started.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

static long calls;

static long told(const char *name) {
    const char *text = getenv(name);
    return text ? atol(text) : 0;
}

static int strikes(void) {
    if (++calls != told("FAULT_AT")) return 0;
    if (!told("FAULT_ERRNO")) kill(getpid(), SIGKILL);
    errno = (int)told("FAULT_ERRNO");
    return 1;
}

#define WRAP(type, failed, name, params, args) \
    type __real_##name params; \
    type __wrap_##name params; \
    type __wrap_##name params { return strikes() ? failed : __real_##name args; }

WRAP(char *, NULL, mkdtemp, (char *path), (path))
WRAP(DIR *, NULL, opendir, (const char *path), (path))
WRAP(int, -1, mkdir, (const char *path, mode_t mode), (path, mode))
WRAP(int, -1, rename, (const char *from, const char *to), (from, to))
WRAP(int, -1, symlink, (const char *to, const char *path), (to, path))
WRAP(int, -1, unlink, (const char *path), (path))
WRAP(int, -1, remove, (const char *path), (path))
WRAP(int, -1, flock, (int file, int how), (file, how))
WRAP(int, -1, access, (const char *path, int how), (path, how))
WRAP(int, -1, lstat, (const char *path, struct stat *info), (path, info))
WRAP(int, -1, statvfs, (const char *path, struct statvfs *info), (path, info))
WRAP(int, -1, utimensat, (int at, const char *path, const struct timespec *times, int flags), (at, path, times, flags))
WRAP(off_t, -1, lseek, (int file, off_t offset, int whence), (file, offset, whence))
WRAP(ssize_t, -1, read, (int file, void *data, size_t size), (file, data, size))
WRAP(ssize_t, -1, pread, (int file, void *data, size_t size, off_t offset), (file, data, size, offset))
WRAP(ssize_t, -1, write, (int file, const void *data, size_t size), (file, data, size))
WRAP(ssize_t, -1, readlink, (const char *path, char *data, size_t size), (path, data, size))

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return strikes() ? -1 : __real_open(path, flags, mode);
}

int __real_close(int file);
int __wrap_close(int file);
int __wrap_close(int file) {
    int failed = strikes(), why = errno, done = __real_close(file);
    if (failed) errno = why;
    return failed ? -1 : done;
}

time_t __real_time(time_t *into);
time_t __wrap_time(time_t *into);
time_t __wrap_time(time_t *into) { return getenv("FAULT_TIME") ? (time_t)told("FAULT_TIME") : __real_time(into); }

int __real_execve(const char *path, char *const argv[], char *const environment[]);
int __wrap_execve(const char *path, char *const argv[], char *const environment[]);
int __wrap_execve(const char *path, char *const argv[], char *const environment[]) {
    if (getenv("FAULT_COUNT")) fprintf(stderr, "%ld", calls);
    return __real_execve(path, argv, environment);
}
