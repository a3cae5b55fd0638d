/* The single program for macOS: this launcher with the program's folder, a compressed tar, as a section of its own.
 *
 * As a section, and not appended, the tar is covered by the program's signature, which arm64 requires. At its first start
 * the launcher unpacks the folder once into a private cache (build/cache.c); every start then runs the interpreter of
 * that folder in this process.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <mach-o/dyld.h>
#include <mach-o/loader.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../cache.h"
#include "../unpack.h"

#define ATTEMPTS 3 /* to use the unpacked program before another process removes it */

/* The tar, into its own section. */
__asm__(".section __PAYLOAD,__payload,regular,no_dead_strip\n"
        ".globl _coder_payload\n"
        ".p2align 4\n"
        "_coder_payload:\n"
        ".incbin \"payload.bin\"\n"
        ".section __TEXT,__text\n");
extern const char coder_payload[];
extern const struct mach_header_64 _mh_execute_header;

static char self_path[PATH_SIZE];
static void *python;

static void *function(const char *name) {
    void *found = dlsym(python, name);
    if (!found) {
        errno = ENOENT;
        fail("the unpacked program lacks", name);
    }
    return found;
}

#include "interpreter.h"

static void find_self(void) {
    static char given[PATH_SIZE];
    uint32_t size = sizeof given;
    if (_NSGetExecutablePath(given, &size) || !realpath(given, self_path)) fail("cannot find", "this program");
}

/* Offset and size of the payload in the program's file. */
static void find_payload(off_t *offset, off_t *size) {
    const char *at = (const char *)(&_mh_execute_header + 1);
    *size = 0;
    for (uint32_t i = 0; i < _mh_execute_header.ncmds; i++) {
        const struct load_command *command = (const void *)at;
        const struct segment_command_64 *segment = (const void *)at;
        if (command->cmd == LC_SEGMENT_64 && !strcmp(segment->segname, "__PAYLOAD")) {
            const struct section_64 *section = (const void *)(segment + 1);
            *offset = section->offset;
            *size = PAYLOAD_SIZE;
        }
        at += command->cmdsize;
    }
    if (!*size) damaged(self_path);
}

static void load_python(const char *folder) {
    char path[PATH_SIZE];
    join(path, folder, PROGRAM);
    python = dlopen(path, RTLD_NOW | RTLD_GLOBAL); /* extension modules find its names in the whole process */
    if (python) return;
    fprintf(stderr, "coder: cannot load %s: %s\n", path, dlerror());
    exit(127);
}

int main(int argc, char **argv) {
    char cache[PATH_SIZE], target[PATH_SIZE], folder[PATH_SIZE];
    off_t offset, size;
    find_self();
    find_payload(&offset, &size);
    setenv("CODER_SELF", self_path, 1);
    int file = open(self_path, O_RDONLY | O_CLOEXEC);
    if (file < 0) fail("cannot read", self_path);
    choose_cache(cache, KEY);
    for (int i = 0; !hold_program(cache, KEY); i++) {
        if (i == ATTEMPTS) fail("another process removes what is unpacked into", cache);
        verify(file, offset, offset + size, KEY, self_path);
        tidy_cache(cache, KEY); /* first, because it can free the required space */
        int held = make_folder(cache, folder);
        unpack(file, offset, offset + size, folder, self_path);
        put_in_place(cache, KEY, folder);
        close(held);
    }
    close(file);
    join(target, cache, KEY);
    load_python(target);
    return run_python(target, self_path, argc, argv);
}
