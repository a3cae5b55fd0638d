/* Folder of unpacked programs: creation, locking and removal.
 *
 *   KEY/            a complete program; every process that runs it holds a shared lock on its `.lock`
 *   .new-XXXXXX/    a program being unpacked; the unpacking process holds a shared lock on its `.lock`
 *   .old-XXXXXX/    a program being removed
 *   .lock           held while a program is given its name
 *
 * An unlocked name with a leading dot was left by a killed start, regardless of its age, and is removed. A program gets
 * and loses its name by one rename, so that it exists completely or not at all.
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
#ifndef PROGRAM /* the file that a complete folder has */
#define PROGRAM "coder"
#endif

static int is_whole(const char *folder) {
    char part[PATH_SIZE];
    join(part, folder, PROGRAM);
    if (access(part, X_OK)) return 0;
    join(part, folder, ".lock");
    return !access(part, F_OK);
}

/* ---- which folder */

/* Whether the nearest existing folder belongs to this user or the system. Under `sudo` HOME can be another user's:
 * folders of root would be in that user's way. */
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

/* Why a directory cannot be used for programs; NULL if it can. Another user who can write it could
 * run code as this user. A read-only directory is usable if it has the requested program. */
static const char *unusable(const char *path, const char *key) {
    struct stat info;
    struct statvfs volume;
    char wanted[PATH_SIZE];
    if (make_directories(path, 0700)) return strerror(errno);
    if (lstat(path, &info) || !S_ISDIR(info.st_mode)) return "is no directory";
    if (info.st_uid != geteuid()) return "belongs to another user";
    if (info.st_mode & (S_IWGRP | S_IWOTH)) return "can be written by others";
#ifdef ST_NOEXEC /* macOS maps libraries from such a volume, too */
    if (statvfs(path, &volume) == 0 && (volume.f_flag & ST_NOEXEC)) return "is mounted noexec";
#else
    (void)volume;
#endif
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
        why = i < 2 && !is_in_own_place(out) ? "would be in another user's folder" : unusable(out, key);
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

/* Removes a folder whose lock is free or missing: a folder gets its lock before any other file. */
static void remove_unheld(const char *folder) {
    int held = open_lock(folder, O_RDWR);
    if (held < 0 ? errno == ENOENT : !flock(held, LOCK_EX | LOCK_NB)) remove_tree(folder);
    if (held >= 0) close(held);
}

/* Renames the folder first, so that a partly removed program is never found by its name. */
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

/* ---- creating and using */

int hold_program(const char *cache, const char *key) {
    char folder[PATH_SIZE];
    join(folder, cache, key);
    int held = open_lock(folder, O_RDONLY);
    if (held < 0) return 0;
    flock(held, LOCK_SH); /* waits only for a process that removes the program */
    if (!is_whole(folder)) {
        close(held);
        return 0;
    }
    utimensat(AT_FDCWD, folder, NULL, 0); /* in use: see remove_unused */
    fcntl(held, F_SETFD, 0);              /* the program keeps holding it */
    return 1;
}

int make_folder(const char *cache, char *folder) {
    char lock[PATH_SIZE];
    for (int i = 0; i < ATTEMPTS; i++) { /* another process can clean up between creation and locking */
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
    if (held >= 0) flock(held, LOCK_EX); /* without lock support, the names must suffice */
    if (is_whole(target)) { /* another process was first; its program is the same */
        remove_tree(folder);
    } else if (rename(folder, target)) { /* a cleaner of temporary files removed it */
        if (move_aside(cache, target, aside)) remove_unheld(aside);
        if (rename(folder, target)) fail("cannot create", target);
    }
    half_made = NULL;
    if (held >= 0) close(held);
}
