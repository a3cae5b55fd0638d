/* Files of Windows for the launcher: private folders, unpacking, removal. Every error prints one line. */
#ifndef WINDOWS_FILES_H
#define WINDOWS_FILES_H

#define WIN32_LEAN_AND_MEAN
#ifndef UNICODE
#define UNICODE
#endif
#include <windows.h>

#include <stdint.h>

#define PATH_SIZE 4096

/* A folder that fail() and damaged() remove, or NULL. */
extern const wchar_t *half_made;

void complain(const wchar_t *what, const wchar_t *path, const wchar_t *why);
/* Prints one line with the reason of the last error, and exits. */
void fail(const wchar_t *what, const wchar_t *path) __attribute__((noreturn));
void damaged(const wchar_t *file_name) __attribute__((noreturn));

/* left\right into out[PATH_SIZE]. */
void join(wchar_t *out, const wchar_t *left, const wchar_t *right);
int get_variable(const wchar_t *name, wchar_t *out);
void touch(const wchar_t *folder);
void remove_tree(const wchar_t *folder);
void write_file(const wchar_t *path, const char *data, DWORD size);

/* Creates the folder and its parents for this user, the system and administrators. Returns why it cannot be used, or
 * NULL. */
const wchar_t *make_private_folder(const wchar_t *path);

/* Exits unless file[offset, end) matches the key. */
void verify(HANDLE file, int64_t offset, int64_t end, const char *key, const wchar_t *file_name);
/* Unpacks file[offset, end), a GNU tar in a zstd frame, into the folder. */
void unpack(HANDLE file, int64_t offset, int64_t end, const wchar_t *into, const wchar_t *file_name);

#endif
