/* The payload: a GNU tar in one or more zstd frames, each with a checksum. A later member replaces an earlier one of the
 * same name, so that the full program is the slim one with additions.
 *
 * Every error prints one line and leaves nothing incomplete.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "sha256.h"
#include "unpack.h"

const char *half_made;

struct payload {
    int file;
    off_t left;
    const char *name;
    ZSTD_DStream *stream;
    ZSTD_inBuffer in;
    size_t frame_left; /* zero between two frames */
    char block[1 << 17];
};

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *walk) {
    (void)info, (void)kind, (void)walk;
    return remove(path);
}

void remove_tree(const char *path) { nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS); }

static void give_up(void) {
    if (half_made) remove_tree(half_made);
    exit(127);
}

void fail(const char *what, const char *path) {
    int why = errno, space = why == ENOSPC || why == EDQUOT || why == EFBIG;
    const char *hint = space ? " (the program unpacks itself once: free some space, or set CODER_BINARY_CACHE to a directory elsewhere)" : "";
    fprintf(stderr, "coder: %s %s: %s%s\n", what, path, strerror(why), hint);
    give_up();
    abort();
}

void damaged(const char *file_name) {
    fprintf(stderr, "coder: the program file %s is damaged; download it again\n", file_name);
    give_up();
    abort();
}

void join(char *out, const char *left, const char *right) {
    if (snprintf(out, PATH_SIZE, "%s%s%s", left, *right ? "/" : "", right) >= PATH_SIZE) {
        errno = ENAMETOOLONG;
        fail("path too long:", left);
    }
}

int make_directories(const char *path, mode_t mode) {
    char copy[PATH_SIZE];
    join(copy, path, "");
    for (char *at = copy + 1; *at; at++) {
        if (*at != '/') continue;
        *at = 0;
        if (mkdir(copy, mode) && errno != EEXIST) {
            int why = errno;
            if (access(copy, X_OK)) {
                errno = why;
                return -1;
            }
        }
        *at = '/';
    }
    return mkdir(copy, mode) && errno != EEXIST ? -1 : 0;
}

static void refill(struct payload *payload) {
    size_t wanted = payload->left < (off_t)sizeof payload->block ? (size_t)payload->left : sizeof payload->block;
    ssize_t got = wanted ? read(payload->file, payload->block, wanted) : 0;
    if (got < 0) fail("cannot read", payload->name);
    if (!got) damaged(payload->name);
    payload->left -= got;
    payload->in = (ZSTD_inBuffer){payload->block, (size_t)got, 0};
}

/* The input has ended, and the last frame was complete. */
static int at_end(struct payload *payload) {
    return !payload->frame_left && payload->in.pos == payload->in.size && !payload->left;
}

static void read_exactly(struct payload *payload, void *buffer, size_t size) {
    ZSTD_outBuffer out = {buffer, size, 0};
    while (out.pos < size) {
        if (payload->in.pos == payload->in.size && (payload->left || !payload->frame_left)) refill(payload);
        size_t before = out.pos, eaten = payload->in.pos;
        payload->frame_left = ZSTD_decompressStream(payload->stream, &out, &payload->in);
        if (ZSTD_isError(payload->frame_left)) damaged(payload->name);
        if (out.pos == before && payload->in.pos == eaten && payload->in.pos == payload->in.size && !payload->left)
            damaged(payload->name);
    }
}

/* The end of a frame: its checksum. */
static void finish_frame(struct payload *payload) {
    char nothing[1];
    while (payload->frame_left) {
        ZSTD_outBuffer out = {nothing, 0, 0};
        if (payload->in.pos == payload->in.size) {
            if (!payload->left) return;
            refill(payload);
        }
        size_t eaten = payload->in.pos;
        payload->frame_left = ZSTD_decompressStream(payload->stream, &out, &payload->in);
        if (ZSTD_isError(payload->frame_left)) damaged(payload->name);
        if (payload->in.pos == eaten) return; /* it has content: this is its middle */
    }
}

static unsigned long octal(const char *text, int length) {
    unsigned long value = 0;
    for (int i = 0; i < length && text[i] >= '0' && text[i] <= '7'; i++) value = value * 8 + (unsigned)(text[i] - '0');
    return value;
}

static void write_member(struct payload *payload, const char *path, unsigned long size, mode_t mode) {
    static char block[1 << 16];
    unsigned long padded = (size + 511) / 512 * 512;
    unlink(path);
    int out = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode & 0755);
    if (out < 0) fail("cannot write", path);
    while (padded) {
        size_t part = padded < sizeof block ? padded : sizeof block, wanted = size < part ? size : part;
        read_exactly(payload, block, part);
        for (size_t done = 0; done < wanted;) {
            ssize_t wrote = write(out, block + done, wanted - done);
            if (wrote < 0) fail("cannot write", path);
            done += (size_t)wrote;
        }
        size -= wanted;
        padded -= part;
    }
    if (close(out)) fail("cannot write", path);
}

/* GNU's extension for names of the next member that are longer than the header's field. */
static void read_long_name(struct payload *payload, unsigned long size, char *name) {
    size_t padded = (size + 511) / 512 * 512;
    if (padded >= PATH_SIZE) damaged(payload->name);
    read_exactly(payload, name, padded);
    name[size] = 0;
}

/* The archive is ours, but a damaged one must not write outside the target. */
static int is_inside(const char *name) {
    return name[0] != '/' && strncmp(name, "../", 3) && !strstr(name, "/../");
}

static void read_member(struct payload *payload, const char *header, const char *path) {
    char target[101];
    memcpy(target, header + 157, 100);
    target[100] = 0;
    if (header[156] == '5') {
        if (make_directories(path, 0755)) fail("cannot create", path);
    } else if (header[156] == '2') {
        unlink(path);
        if (symlink(target, path)) fail("cannot link", path);
    } else {
        write_member(payload, path, octal(header + 124, 12), (mode_t)octal(header + 100, 8));
    }
}

/* Checked before anything is read or written: a foreign payload is not even parsed. */
void verify(int file, off_t offset, off_t end, const char *key, const char *file_name) {
    static char block[1 << 18];
    struct sha256 hash;
    char digits[65];
    sha256_begin(&hash);
    while (offset < end) {
        size_t wanted = end - offset < (off_t)sizeof block ? (size_t)(end - offset) : sizeof block;
        ssize_t got = pread(file, block, wanted, offset);
        if (got < 0) fail("cannot read", file_name);
        if (!got) damaged(file_name);
        sha256_add(&hash, block, (size_t)got);
        offset += got;
    }
    sha256_end(&hash, digits);
    if (strncmp(digits, key, strlen(key))) damaged(file_name);
}

void unpack(int file, off_t offset, off_t end, const char *into, const char *file_name) {
    char header[512], path[PATH_SIZE], name[PATH_SIZE], long_name[PATH_SIZE] = "";
    static struct payload payload;
    payload.file = file;
    payload.left = end - offset;
    payload.name = file_name;
    payload.stream = ZSTD_createDStream();
    /* A file size limit is reported like other errors, instead of killing the process silently. */
    void (*before)(int) = signal(SIGXFSZ, SIG_IGN);
    if (lseek(file, offset, SEEK_SET) < 0 || !payload.stream) fail("cannot read", file_name);
    for (finish_frame(&payload); !at_end(&payload); finish_frame(&payload)) {
        read_exactly(&payload, header, sizeof header);
        if (!header[0]) continue; /* the end of an archive; another can follow */
        if (header[156] == 'L') {
            read_long_name(&payload, octal(header + 124, 12), long_name);
            continue;
        }
        memcpy(name, header, 100);
        name[100] = 0;
        join(path, into, long_name[0] ? long_name : name);
        long_name[0] = 0;
        if (!is_inside(path + strlen(into) + 1)) damaged(file_name);
        size_t length = strlen(path);
        if (length && path[length - 1] == '/') path[length - 1] = 0;
        read_member(&payload, header, path);
    }
    ZSTD_freeDStream(payload.stream);
    signal(SIGXFSZ, before);
}
