/* The single binary: this small program with the PyInstaller folder appended as a compressed tar (unpack.c).
 *
 * At its first start it unpacks the payload once into a per-user cache, keyed by the payload's hash, and replaces
 * itself with the program there; later starts only exec. A one-file bundle would unpack at every start.
 *
 * Layout: [ELF][tar.zst of the slim program][tar.zst of the remainder][trailer], see `struct trailer`. The slim
 * program's file is the same without the remainder: a server extracts it from its own.
 * Safety: the payload is unpacked only if its SHA-256 matches the key; the cache must be a directory of this user
 * that no other user can write; unpacking goes to a private name and is renamed when complete, so that two first starts
 * or a kill leave nothing incomplete (cache.c).
 * Before that, the launcher tries a command server, which has the program already running: command_client.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cache.h"
#include "command_client.h"
#include "host_libc.h"
#include "unpack.h"

#define MAGIC "CODERPK2"
#define KEY_LEN 32
#define ATTEMPTS 3 /* to use the unpacked program before another process removes it */

struct trailer {
    uint64_t offset;   /* of the payload; little-endian, as all target machines */
    uint64_t slim_end; /* end of the slim program's part; 0 in the slim program itself */
    char slim_key[KEY_LEN];
    char key[KEY_LEN]; /* of the payload: the name of its folder in the cache */
    char magic[8];
};

static char self_path[PATH_SIZE];

/* Reads the file's end. The caller's key is terminated. */
static off_t read_trailer(int file, struct trailer *trailer, char *key) {
    off_t size = file < 0 ? -1 : lseek(file, 0, SEEK_END), end = size - (off_t)sizeof *trailer;
    if (size < 0) fail("cannot read", self_path);
    if (end < 0) damaged(self_path);
    ssize_t got = pread(file, trailer, sizeof *trailer, end);
    if (got < 0) fail("cannot read", self_path);
    if (got != (ssize_t)sizeof *trailer || memcmp(trailer->magic, MAGIC, sizeof trailer->magic) ||
        trailer->offset >= (uint64_t)end)
        damaged(self_path);
    for (int i = 0; i < KEY_LEN; i++) {
        key[i] = trailer->key[i];
        if (!strchr("0123456789abcdef", key[i]) || !key[i]) damaged(self_path);
    }
    key[KEY_LEN] = 0;
    return end;
}

/* As build/starter.c would do, which then does not re-execute; the user's own value is kept for children. */
static void set_library_path(const char *target, const char *program) {
    const char *given = getenv("LD_LIBRARY_PATH");
    char internal[PATH_SIZE], path[2 * PATH_SIZE];
    join(internal, target, "_internal");
    if (given) setenv("LD_LIBRARY_PATH_ORIG", given, 1);
    else unsetenv("LD_LIBRARY_PATH_ORIG");
    if (snprintf(path, sizeof path, given && *given ? "%s:%s" : "%s", internal, given) >= (int)sizeof path) return;
    setenv("LD_LIBRARY_PATH", path, 1);
    setenv("_PYI_APPLICATION_HOME_DIR", internal, 1);
    setenv("_PYI_ARCHIVE_FILE", program, 1); /* a program run by the payload's loader knows only the loader's name */
}

static void install(int file, off_t offset, off_t end, const char *cache, const char *key) {
    char folder[PATH_SIZE];
    verify(file, offset, end, key, self_path);
    tidy_cache(cache, key); /* first, because it can free the required space */
    int held = make_folder(cache, folder);
    unpack(file, offset, end, folder, self_path);
    put_in_place(cache, key, folder);
    close(held);
}

/* Into self_path; several files of the program depend on /proc. */
static void find_self(void) {
    ssize_t length = readlink("/proc/self/exe", self_path, sizeof self_path - 1);
    if (length < 0) fail("/proc has to be mounted:", "/proc/self/exe");
    self_path[length] = 0;
}

int main(int argc, char **argv) {
    struct trailer trailer;
    char key[KEY_LEN + 1], cache[PATH_SIZE], target[PATH_SIZE], program[PATH_SIZE];
    find_self();
    int file = open(self_path, O_RDONLY | O_CLOEXEC);
    off_t end = read_trailer(file, &trailer, key);
    setenv("CODER_SELF", self_path, 1);
    int wants_server = run_warm(key, argc, argv);
    choose_cache(cache, key);
    for (int i = 0; !hold_program(cache, key); i++) {
        if (i == ATTEMPTS) fail("another process removes what is unpacked into", cache);
        install(file, (off_t)trailer.offset, end, cache, key);
    }
    close(file);
    join(target, cache, key);
    join(program, target, "coder");
    set_library_path(target, program);
    if (wants_server) start_command_server(program, exec_program);
    exec_program(program, argv, environ);
    if (errno == ENOENT && !access(program, X_OK)) fail("this system has no C library that can run", program);
    fail("cannot start", program);
}
