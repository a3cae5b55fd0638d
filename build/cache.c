/* Where unpacked programs lie, and how they come and go there.
 *
 *   KEY/            a whole program; its `.lock` is held, shared, by every process that runs it
 *   .new-XXXXXX/    one being unpacked; its `.lock` is held, shared, by who does it
 *   .old-XXXXXX/    one being removed
 *   .lock           held while a program is given its name
 *
 * What begins with a dot and is not held was left by a start that was killed, whatever the clock says: it is removed. A
 * name is given, and taken away, by one rename, so that a program is there as a whole or not at all.
 */
#define _GNU_SOURCE
#include "cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "unpack.h"

#define KEEP_UNUSED_SECONDS (30L * 24 * 3600)
#define ATTEMPTS 100

static int is_whole(const char *folder) {
    char part[PATH_SIZE];
    join(part, folder, "coder");
    if (access(part, X_OK)) return 0;
    join(part, folder, ".lock");
    return !access(part, F_OK);
}

/* ---- which folder */

/* Whether the nearest folder that exists is ours or the system's. Under `sudo` HOME may be somebody's: folders of root's
 * in there would be in that person's way. */
static int is_in_own_place(const char *path) {
    struct stat info;
    char copy[PATH_SIZE];
    join(copy, path, "");
    while (lstat(copy, &info)) {
        char *slash = strrchr(copy, '/');
        if (!slash || slash == copy) return 1;
        *slash = 0;
    }
    return info.st_uid == geteuid() || info.st_uid == 0;
}

/* Why a directory cannot hold programs of ours; NULL when it can. One that somebody else could write would let them
 * run code as us. One that cannot be written will do when it has what is wanted. */
static const char *unusable(const char *path, const char *key) {
    struct stat info;
    struct statvfs volume;
    char wanted[PATH_SIZE];
    if (make_directories(path, 0700)) return strerror(errno);
    if (lstat(path, &info) || !S_ISDIR(info.st_mode)) return "is no directory";
    if (info.st_uid != geteuid()) return "belongs to somebody else";
    if (info.st_mode & (S_IWGRP | S_IWOTH)) return "can be written by others";
    if (statvfs(path, &volume) == 0 && (volume.f_flag & ST_NOEXEC)) return "is mounted noexec";
    if (!access(path, W_OK | X_OK)) return NULL;
    int why = errno;
    join(wanted, path, key);
    return is_whole(wanted) ? NULL : strerror(why);
}

void choose_cache(char *out, const char *key) {
    static const char *const variables[] = {"XDG_CACHE_HOME", "HOME"};
    static const char *const below[] = {"coder/dist", ".cache/coder/dist"};
    static const char *const shared[] = {"/var/tmp", P_tmpdir};
    const char *value, *why;
    char fallback[64], reasons[2 * PATH_SIZE] = "";
    if ((value = getenv("CODER_BINARY_CACHE")) && *value) {
        join(out, value, "");
        if (!(why = unusable(out, key))) return;
        fprintf(stderr, "coder: CODER_BINARY_CACHE=%s cannot be used: %s\n", value, why);
        exit(127);
    }
    snprintf(fallback, sizeof fallback, "coder-dist-%ld", (long)geteuid());
    for (int i = 0; i < 4; i++) {
        value = i < 2 ? getenv(variables[i]) : shared[i - 2];
        if (!value || *value != '/') continue;
        join(out, value, i < 2 ? below[i] : fallback);
        why = i < 2 && !is_in_own_place(out) ? "would lie in a folder of somebody else's" : unusable(out, key);
        if (!why) return;
        size_t used = strlen(reasons);
        snprintf(reasons + used, sizeof reasons - used, "%s%s %s", used ? "; " : "", out, why);
    }
    fprintf(stderr, "coder: no private, executable directory to unpack into (%s); set CODER_BINARY_CACHE to one\n", reasons);
    exit(127);
}

/* ---- removing */

static int open_lock(const char *folder, int flags) {
    char lock[PATH_SIZE];
    join(lock, folder, ".lock");
    return open(lock, flags | O_CLOEXEC, 0600);
}

/* Removes a folder whose lock nobody holds, or that has none: a folder gets its lock before anything else. */
static void remove_unheld(const char *folder) {
    int held = open_lock(folder, O_RDWR);
    if (held < 0 ? errno == ENOENT : !flock(held, LOCK_EX | LOCK_NB)) remove_tree(folder);
    if (held >= 0) close(held);
}

/* Takes the name away: what is half removed must not be found under it. */
static int move_aside(const char *cache, const char *folder, char *aside) {
    join(aside, cache, ".old-XXXXXX");
    if (!mkdtemp(aside)) return 0;
    if (!rename(folder, aside)) return 1;
    rmdir(aside);
    return 0;
}

static void remove_unused(const char *cache, const char *folder) {
    struct stat info;
    char aside[PATH_SIZE];
    if (lstat(folder, &info) || !S_ISDIR(info.st_mode) || time(NULL) - info.st_mtime < KEEP_UNUSED_SECONDS) return;
    int held = open_lock(folder, O_RDWR);
    if (held >= 0 && !flock(held, LOCK_EX | LOCK_NB) && move_aside(cache, folder, aside)) remove_tree(aside);
    if (held >= 0) close(held);
}

void tidy_cache(const char *cache, const char *key) {
    DIR *listing = opendir(cache);
    struct dirent *entry;
    char path[PATH_SIZE];
    if (!listing) return;
    while ((entry = readdir(listing))) {
        join(path, cache, entry->d_name);
        if (!strncmp(entry->d_name, ".new-", 5) || !strncmp(entry->d_name, ".old-", 5)) remove_unheld(path);
        else if (entry->d_name[0] != '.' && strcmp(entry->d_name, key)) remove_unused(cache, path);
    }
    closedir(listing);
}

/* ---- making and using */

int hold_program(const char *cache, const char *key) {
    char folder[PATH_SIZE];
    join(folder, cache, key);
    int held = open_lock(folder, O_RDONLY);
    if (held < 0) return 0;
    flock(held, LOCK_SH); /* waits only for one who is taking the program away */
    if (!is_whole(folder)) {
        close(held);
        return 0;
    }
    utimensat(AT_FDCWD, folder, NULL, 0); /* in use: see remove_unused */
    fcntl(held, F_SETFD, 0);              /* the program goes on holding it */
    return 1;
}

int make_folder(const char *cache, char *folder) {
    char lock[PATH_SIZE];
    for (int i = 0; i < ATTEMPTS; i++) { /* another may tidy up between its making and its locking */
        join(folder, cache, ".new-XXXXXX");
        if (!mkdtemp(folder)) fail("cannot write into", cache);
        half_made = folder;
        int held = open_lock(folder, O_RDWR | O_CREAT | O_EXCL);
        if (held < 0 && errno != ENOENT) fail("cannot write into", cache);
        if (held < 0) continue;
        flock(held, LOCK_SH);
        join(lock, folder, ".lock");
        if (!access(lock, F_OK)) return held;
        close(held);
    }
    fail("cannot keep a folder in", cache);
}

void put_in_place(const char *cache, const char *key, const char *folder) {
    char target[PATH_SIZE], aside[PATH_SIZE];
    join(target, cache, key);
    int held = open_lock(cache, O_RDWR | O_CREAT);
    if (held >= 0) flock(held, LOCK_EX); /* where locks cannot be had, the names have to do */
    if (is_whole(target)) { /* another was first; theirs is the same */
        remove_tree(folder);
    } else if (rename(folder, target)) { /* a cleaner of temporary files has been there */
        if (move_aside(cache, target, aside)) remove_unheld(aside);
        if (rename(folder, target)) fail("cannot create", target);
    }
    half_made = NULL;
    if (held >= 0) close(held);
}
