/* The single binary: this small program with the PyInstaller folder appended as a compressed tar (unpack.c).
 *
 * At its first start it unpacks the payload once into a per-user cache, keyed by the payload's hash, and replaces
 * itself with the program there; later starts only exec. A one-file bundle would unpack at every start.
 *
 * Layout: [ELF][tar.zst of the slim program][tar.zst of the rest][trailer], see `struct trailer`. The slim program's
 * file is the same without the rest: a server cuts it out of its own.
 * Safety: the cache must be a directory of ours that nobody else may write; unpacking goes to a private name and is
 * renamed when whole, so that two first starts or a kill leave nothing half-made. A shared lock held by every running
 * program keeps its files while versions unused for a month are removed.
 * Before all that a command server is looked for, which has the program running already: command_client.c.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "command_client.h"
#include "host_libc.h"
#include "unpack.h"

#define MAGIC "CODERPK2"
#define KEY_LEN 32
#define KEEP_UNUSED_SECONDS (30L * 24 * 3600)
#define STALE_SECONDS (24L * 3600)

struct trailer {
    uint64_t offset;   /* of the payload; little-endian, as every machine we build for */
    uint64_t slim_end; /* where the slim program's part ends; 0 in the slim program itself */
    char slim_key[KEY_LEN];
    char key[KEY_LEN]; /* of the payload: names its folder in the cache */
    char magic[8];
};

static char self_path[PATH_SIZE];

/* Why a directory cannot hold programs of ours; NULL when it can. One that somebody else could write would let them
 * run code as us. */
static const char *unusable(const char *path) {
    struct stat info;
    struct statvfs volume;
    if (make_directories(path, 0700)) return strerror(errno);
    if (lstat(path, &info) || !S_ISDIR(info.st_mode)) return "is no directory";
    if (info.st_uid != geteuid()) return "belongs to somebody else";
    if (info.st_mode & (S_IWGRP | S_IWOTH)) return "can be written by others";
    if (statvfs(path, &volume) == 0 && (volume.f_flag & ST_NOEXEC)) return "is mounted noexec";
    return access(path, W_OK | X_OK) ? strerror(errno) : NULL;
}

static void choose_cache(char *out) {
    static const char *const variables[] = {"XDG_CACHE_HOME", "HOME"};
    static const char *const below[] = {"coder/dist", ".cache/coder/dist"};
    static const char *const shared[] = {"/var/tmp", P_tmpdir};
    const char *value, *why;
    char fallback[64], reasons[2 * PATH_SIZE] = "";
    if ((value = getenv("CODER_BINARY_CACHE")) && *value) {
        join(out, value, "");
        if (!(why = unusable(out))) return;
        fprintf(stderr, "coder: CODER_BINARY_CACHE=%s cannot be used: %s\n", value, why);
        exit(127);
    }
    snprintf(fallback, sizeof fallback, "coder-dist-%ld", (long)geteuid());
    for (int i = 0; i < 4; i++) {
        value = i < 2 ? getenv(variables[i]) : shared[i - 2];
        if (!value || *value != '/') continue;
        join(out, value, i < 2 ? below[i] : fallback);
        if (!(why = unusable(out))) return;
        size_t used = strlen(reasons);
        snprintf(reasons + used, sizeof reasons - used, "%s%s %s", used ? "; " : "", out, why);
    }
    fprintf(stderr, "coder: no private, executable directory to unpack into (%s); set CODER_BINARY_CACHE to one\n", reasons);
    exit(127);
}

static long age(const char *path) {
    struct stat info;
    return lstat(path, &info) || !S_ISDIR(info.st_mode) ? 0 : (long)(time(NULL) - info.st_mtime);
}

static void remove_unused(const char *cache, const char *key) {
    DIR *listing = opendir(cache);
    struct dirent *entry;
    char path[PATH_SIZE], lock[PATH_SIZE];
    if (!listing) return;
    while ((entry = readdir(listing))) {
        join(path, cache, entry->d_name);
        if (!strncmp(entry->d_name, ".new-", 5) && age(path) > STALE_SECONDS) remove_tree(path); /* killed half-way */
        if (entry->d_name[0] == '.' || !strcmp(entry->d_name, key) || age(path) < KEEP_UNUSED_SECONDS) continue;
        join(lock, path, ".lock");
        int held = open(lock, O_RDONLY | O_CLOEXEC);
        if (held >= 0 && flock(held, LOCK_EX | LOCK_NB) == 0) remove_tree(path);
        if (held >= 0) close(held);
    }
    closedir(listing);
}

static void install(int file, off_t offset, off_t end, const char *cache, const char *key, const char *target) {
    char temporary[PATH_SIZE], aside[PATH_SIZE], inside[PATH_SIZE];
    join(temporary, cache, ".new-XXXXXX");
    if (!mkdtemp(temporary)) fail("cannot create", temporary);
    unpack(file, offset, end, temporary, self_path);
    join(inside, temporary, ".lock");
    int made = open(inside, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (made >= 0) close(made);
    if (rename(temporary, target)) {
        join(inside, target, "coder");
        if (!access(inside, X_OK)) { /* somebody else was first; theirs is the same */
            remove_tree(temporary);
        } else { /* a cleaner of temporary files has been there */
            join(aside, cache, ".new-XXXXXX");
            if (!mkdtemp(aside) || rename(target, aside) || rename(temporary, target)) {
                int why = errno;
                remove_tree(temporary);
                errno = why;
                fail("cannot create", target);
            }
            remove_tree(aside);
        }
    }
    remove_unused(cache, key);
}

/* Reads the file's end. The caller's key is terminated. */
static off_t read_trailer(int file, struct trailer *trailer, char *key) {
    off_t size = file < 0 ? -1 : lseek(file, 0, SEEK_END), end = size - (off_t)sizeof *trailer;
    if (end < 0 || pread(file, trailer, sizeof *trailer, end) != (ssize_t)sizeof *trailer ||
        memcmp(trailer->magic, MAGIC, sizeof trailer->magic) || trailer->offset >= (uint64_t)end)
        damaged(self_path);
    for (int i = 0; i < KEY_LEN; i++) {
        key[i] = trailer->key[i];
        if (!strchr("0123456789abcdef", key[i]) || !key[i]) damaged(self_path);
    }
    key[KEY_LEN] = 0;
    return end;
}

/* As build/starter.c would, which then need not start twice; the person's own value waits for children. */
static void set_library_path(const char *target, const char *program) {
    const char *given = getenv("LD_LIBRARY_PATH");
    char internal[PATH_SIZE], path[2 * PATH_SIZE];
    join(internal, target, "_internal");
    if (given) setenv("LD_LIBRARY_PATH_ORIG", given, 1);
    else unsetenv("LD_LIBRARY_PATH_ORIG");
    if (snprintf(path, sizeof path, given && *given ? "%s:%s" : "%s", internal, given) >= (int)sizeof path) return;
    setenv("LD_LIBRARY_PATH", path, 1);
    setenv("_PYI_APPLICATION_HOME_DIR", internal, 1);
    setenv("_PYI_ARCHIVE_FILE", program, 1); /* who is run by the loader of the payload knows only that one's name */
}

int main(int argc, char **argv) {
    struct trailer trailer;
    char key[KEY_LEN + 1], cache[PATH_SIZE], target[PATH_SIZE], program[PATH_SIZE], lock[PATH_SIZE];
    ssize_t length = readlink("/proc/self/exe", self_path, sizeof self_path - 1);
    if (length < 0) fail("cannot find", "/proc/self/exe");
    self_path[length] = 0;
    int file = open(self_path, O_RDONLY | O_CLOEXEC);
    off_t end = read_trailer(file, &trailer, key);
    setenv("CODER_SELF", self_path, 1);
    int wants_server = run_warm(key, argc, argv);
    choose_cache(cache);
    join(target, cache, key);
    join(program, target, "coder");
    if (access(program, X_OK)) install(file, (off_t)trailer.offset, end, cache, key, target);
    close(file);
    utimensat(AT_FDCWD, target, NULL, 0); /* in use: see remove_unused */
    join(lock, target, ".lock");
    int held = open(lock, O_RDONLY);
    if (held >= 0) flock(held, LOCK_SH | LOCK_NB);
    set_library_path(target, program);
    if (wants_server) start_command_server(program, exec_program);
    exec_program(program, argv, environ);
    fail("cannot start", program);
}
