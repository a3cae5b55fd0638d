/* The program uses the machine's own C library if it is new enough; with musl or an old glibc, the one in the payload:
 * `_internal/glibc/ld-linux… --library-path … coder`.
 *
 * The machine's own is preferred because it supports the machine's name services. The build sets the required version
 * and the loader's path (GLIBC_NEEDED as major * 1000 + minor, GLIBC_LOADER); without them there is no check.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host_libc.h"
#include "unpack.h"

#ifdef GLIBC_NEEDED

static const char *const places[] = {GLIBC_PLACES};

/* Every glibc contains "… stable release version 2.36.", regardless of the distribution. */
static int version_of(const char *path) {
    static const char mark[] = "release version ";
    struct stat info;
    int major = 0, minor = 0, file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    if (!fstat(file, &info) && info.st_size > 0) {
        size_t size = (size_t)info.st_size;
        char *text = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
        if (text != MAP_FAILED) {
            char *found = memmem(text, size, mark, sizeof mark - 1);
            char number[16] = "";
            if (found && found + sizeof mark + sizeof number < text + size) {
                memcpy(number, found + sizeof mark - 1, sizeof number - 1);
                if (sscanf(number, "%d.%d", &major, &minor) != 2) major = 0;
            }
            munmap(text, size);
        }
    }
    close(file);
    return major * 1000 + minor;
}

static int host_will_do(void) {
    const char *forced = getenv("CODER_BUNDLED_LIBC");
    if (forced && *forced) return 0;
    if (access(GLIBC_LOADER, X_OK)) return 0;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        int version = version_of(places[i]);
        if (version) return version >= GLIBC_NEEDED;
    }
    return 0;
}

static void exec_with_bundled(const char *program, char *const argv[], char *const environment[]) {
    char loader[PATH_SIZE], folder[PATH_SIZE], internal[PATH_SIZE], glibc[PATH_SIZE], search[2 * PATH_SIZE + 2];
    char path[PATH_SIZE + 32];
    size_t count = 0, at = 0, variables = 0, kept = 0;
    join(folder, program, "");
    *strrchr(folder, '/') = 0;
    join(internal, folder, "_internal");
    join(glibc, internal, "glibc");
    join(loader, glibc, strrchr(GLIBC_LOADER, '/') + 1);
    if (access(loader, X_OK)) return;
    snprintf(search, sizeof search, "%s:%s", glibc, internal);
    while (argv[count]) count++;
    while (environment[variables]) variables++;
    char **words = calloc(count + 6, sizeof *words), **passed = calloc(variables + 3, sizeof *passed);
    if (!words || !passed) return;
    /* PyInstaller re-executes itself with the loader but without its option; the variable replaces it. child_env()
     * removes it from the program's children. */
    snprintf(path, sizeof path, "LD_LIBRARY_PATH=%s", glibc);
    for (size_t i = 0; i < variables; i++)
        if (strncmp(environment[i], "LD_LIBRARY_PATH=", 16)) passed[kept++] = environment[i];
    passed[kept++] = path;
    passed[kept++] = (char *)"CODER_OWN_LIBC=1";
    words[at++] = loader;
    words[at++] = (char *)"--library-path";
    words[at++] = search;
    words[at++] = (char *)program;
    for (size_t i = 1; i < count; i++) words[at++] = argv[i];
    execve(loader, words, passed);
    free(words);
    free(passed);
}

#endif

int exec_program(const char *program, char *const argv[], char *const environment[]) {
#ifdef GLIBC_NEEDED
    if (!host_will_do()) exec_with_bundled(program, argv, environment);
#endif
    return execve(program, argv, environment);
}
