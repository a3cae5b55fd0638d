/* The single binary: this small program with the PyInstaller folder appended as a gzip'd tar.
 *
 * At its first start it unpacks the payload once into a per-user cache, keyed by the payload's hash, and replaces
 * itself with the program there; later starts only exec. A one-file bundle would unpack at every start.
 *
 * Layout: [ELF][gzip'd tar][8 bytes LE: payload offset][32 hex digits: key][8 bytes: magic]
 * Safety: the cache must be a directory of ours that nobody else may write; unpacking goes to a private name and is
 * renamed when whole, so that two first starts or a kill leave nothing half-made. A shared lock held by every running
 * program keeps its files while versions unused for a month are removed.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#define MAGIC "CODERPK1"
#define KEY_LEN 32
#define TRAILER (8 + KEY_LEN + 8)
#define KEEP_UNUSED_SECONDS (30L * 24 * 3600)
#define PATH_SIZE 4096

static char self_path[PATH_SIZE];

static void fail(const char *what, const char *path) {
    fprintf(stderr, "coder: %s %s: %s\n", what, path, strerror(errno));
    exit(127);
}

static void join(char *out, const char *left, const char *right) {
    if (snprintf(out, PATH_SIZE, "%s%s%s", left, *right ? "/" : "", right) >= PATH_SIZE) {
        errno = ENAMETOOLONG;
        fail("path too long:", left);
    }
}

static int make_directories(const char *path, mode_t mode) {
    char copy[PATH_SIZE];
    join(copy, path, "");
    for (char *at = copy + 1; *at; at++) {
        if (*at != '/') continue;
        *at = 0;
        if (mkdir(copy, mode) && errno != EEXIST) return -1;
        *at = '/';
    }
    return mkdir(copy, mode) && errno != EEXIST ? -1 : 0;
}

/* A cache somebody else could write would let them run code as us. */
static int usable_cache(const char *path) {
    struct stat info;
    struct statvfs volume;
    if (make_directories(path, 0700)) return 0;
    if (lstat(path, &info) || !S_ISDIR(info.st_mode)) return 0;
    if (info.st_uid != geteuid() || (info.st_mode & (S_IWGRP | S_IWOTH))) return 0;
    if (statvfs(path, &volume) == 0 && (volume.f_flag & ST_NOEXEC)) return 0;
    return access(path, W_OK | X_OK) == 0;
}

static int choose_cache(char *out) {
    const char *value;
    char fallback[PATH_SIZE];
    if ((value = getenv("CODER_BINARY_CACHE")) && *value) {
        join(out, value, "");
        if (usable_cache(out)) return 1;
    }
    if ((value = getenv("XDG_CACHE_HOME")) && *value) {
        join(out, value, "coder/dist");
        if (usable_cache(out)) return 1;
    }
    if ((value = getenv("HOME")) && *value) {
        join(out, value, ".cache/coder/dist");
        if (usable_cache(out)) return 1;
    }
    snprintf(fallback, sizeof fallback, "coder-dist-%ld", (long)geteuid());
    join(out, "/var/tmp", fallback);
    if (usable_cache(out)) return 1;
    join(out, P_tmpdir, fallback);
    return usable_cache(out);
}

static unsigned long octal(const char *text, int length) {
    unsigned long value = 0;
    for (int i = 0; i < length && text[i] >= '0' && text[i] <= '7'; i++) value = value * 8 + (text[i] - '0');
    return value;
}

static void read_exactly(gzFile payload, void *buffer, unsigned size) {
    if (gzread(payload, buffer, size) != (int)size) {
        fprintf(stderr, "coder: the program file %s is damaged; download it again\n", self_path);
        exit(127);
    }
}

static void write_member(gzFile payload, const char *path, unsigned long size, mode_t mode) {
    static char block[1 << 16];
    unsigned long padded = (size + 511) / 512 * 512;
    int out = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode & 0755);
    if (out < 0) fail("cannot write", path);
    while (padded) {
        unsigned part = padded < sizeof block ? (unsigned)padded : (unsigned)sizeof block;
        read_exactly(payload, block, part);
        unsigned wanted = size < part ? (unsigned)size : part;
        if (write(out, block, wanted) != (ssize_t)wanted) fail("cannot write", path);
        size -= wanted;
        padded -= part;
    }
    if (close(out)) fail("cannot write", path);
}

static void unpack(int file, off_t offset, const char *into) {
    char header[512], path[PATH_SIZE], long_name[PATH_SIZE] = "";
    if (lseek(file, offset, SEEK_SET) < 0) fail("cannot read", self_path);
    gzFile payload = gzdopen(dup(file), "rb");
    if (!payload) fail("cannot read", self_path);
    gzbuffer(payload, 1 << 18);
    for (;;) {
        read_exactly(payload, header, sizeof header);
        if (!header[0]) break;
        unsigned long size = octal(header + 124, 12), mode = octal(header + 100, 8);
        if (header[156] == 'L') { /* GNU: the next member's name */
            if (size >= sizeof long_name) fail("bad member in", self_path);
            read_exactly(payload, long_name, (unsigned)((size + 511) / 512 * 512 < sizeof long_name
                                                            ? (size + 511) / 512 * 512
                                                            : sizeof long_name));
            long_name[size] = 0;
            continue;
        }
        char name[101];
        memcpy(name, header, 100);
        name[100] = 0;
        join(path, into, long_name[0] ? long_name : name);
        long_name[0] = 0;
        size_t length = strlen(path);
        if (length && path[length - 1] == '/') path[length - 1] = 0;
        if (header[156] == '5') {
            if (make_directories(path, 0755)) fail("cannot create", path);
        } else if (header[156] == '2') {
            char target[101];
            memcpy(target, header + 157, 100);
            target[100] = 0;
            if (symlink(target, path)) fail("cannot link", path);
        } else {
            write_member(payload, path, size, (mode_t)mode);
        }
    }
    gzclose(payload);
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *walk) {
    (void)info, (void)kind, (void)walk;
    return remove(path);
}

static void remove_unused(const char *cache, const char *key) {
    DIR *listing = opendir(cache);
    struct dirent *entry;
    struct stat info;
    char path[PATH_SIZE], lock[PATH_SIZE];
    if (!listing) return;
    while ((entry = readdir(listing))) {
        if (entry->d_name[0] == '.' || !strcmp(entry->d_name, key)) continue;
        join(path, cache, entry->d_name);
        if (lstat(path, &info) || !S_ISDIR(info.st_mode) || time(NULL) - info.st_mtime < KEEP_UNUSED_SECONDS) continue;
        join(lock, path, ".lock");
        int held = open(lock, O_RDONLY | O_CLOEXEC);
        if (held >= 0 && flock(held, LOCK_EX | LOCK_NB) == 0) nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
        if (held >= 0) close(held);
    }
    closedir(listing);
}

static void install(int file, off_t offset, const char *cache, const char *key, const char *target) {
    char private_name[64], temporary[PATH_SIZE], lock[PATH_SIZE];
    snprintf(private_name, sizeof private_name, ".new-%ld-%ld", (long)getpid(), (long)time(NULL));
    join(temporary, cache, private_name);
    if (mkdir(temporary, 0700)) fail("cannot create", temporary);
    unpack(file, offset, temporary);
    join(lock, temporary, ".lock");
    int made = open(lock, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (made >= 0) close(made);
    if (rename(temporary, target)) {
        /* Somebody else was first; theirs is the same. */
        nftw(temporary, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
        if (access(target, X_OK)) fail("cannot create", target);
    }
    remove_unused(cache, key);
}

int main(int argc, char **argv) {
    char trailer[TRAILER], key[KEY_LEN + 1], cache[PATH_SIZE], target[PATH_SIZE], program[PATH_SIZE], lock[PATH_SIZE];
    uint64_t offset;
    (void)argc;
    ssize_t length = readlink("/proc/self/exe", self_path, sizeof self_path - 1);
    if (length < 0) fail("cannot find", "/proc/self/exe");
    self_path[length] = 0;
    int file = open(self_path, O_RDONLY | O_CLOEXEC);
    off_t size = file < 0 ? -1 : lseek(file, 0, SEEK_END);
    if (size < TRAILER || pread(file, trailer, TRAILER, size - TRAILER) != TRAILER ||
        memcmp(trailer + 8 + KEY_LEN, MAGIC, 8)) {
        fprintf(stderr, "coder: the program file %s is damaged; download it again\n", self_path);
        return 127;
    }
    memcpy(&offset, trailer, 8);
    memcpy(key, trailer + 8, KEY_LEN);
    key[KEY_LEN] = 0;
    if (!choose_cache(cache)) {
        fprintf(stderr, "coder: no private, executable directory to unpack into; set CODER_BINARY_CACHE to one\n");
        return 127;
    }
    join(target, cache, key);
    join(program, target, "coder");
    if (access(program, X_OK)) install(file, (off_t)offset, cache, key, target);
    close(file);
    utimensat(AT_FDCWD, target, NULL, 0); /* in use: see remove_unused */
    join(lock, target, ".lock");
    int held = open(lock, O_RDONLY);
    if (held >= 0) flock(held, LOCK_SH | LOCK_NB);
    setenv("CODER_SELF", self_path, 1);
    execv(program, argv);
    fail("cannot start", program);
}
