/* Unpacking the payload; see unpack.c. */
#ifndef UNPACK_H
#define UNPACK_H

#include <sys/types.h>

#define PATH_SIZE 4096

/* Prints one line, removes what was half unpacked, and ends. */
void fail(const char *what, const char *path) __attribute__((noreturn));
void damaged(const char *file_name) __attribute__((noreturn));

/* left/right into out[PATH_SIZE]. */
void join(char *out, const char *left, const char *right);
int make_directories(const char *path, mode_t mode);
void remove_tree(const char *path);

/* Unpacks file[offset, end) into the directory, which fail() removes while this runs. */
void unpack(int file, off_t offset, off_t end, const char *into, const char *file_name);

#endif
