/* The single program for Windows: this launcher with the program's folder appended as a compressed tar.
 *
 * At its first start it unpacks the folder once into a private cache of the user, keyed by the hash of the tar; every
 * start then runs the interpreter of that folder in this process. A second process would need its own handling of the
 * console, of exit codes and of jobs.
 *
 * Layout and promises are those of build/launcher.c: the payload is unpacked only if its SHA-256 matches; a folder gets
 * its name by one rename when it is complete; a folder that a killed start left is removed by the next one. Every
 * process that uses a folder keeps its `.lock` open, and only a folder whose lock can be opened alone is removed.
 */
#include "windows_files.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "../sha256.h"

#define MAGIC "CODERPK2"
#define KEY_LEN 32
#define ATTEMPTS 100 /* of a rename: antivirus programs keep new files open for moments */
#define KEEP_UNUSED_SECONDS (30LL * 24 * 3600)

struct trailer {
    uint64_t offset; /* of the payload */
    uint64_t slim_end;
    char slim_key[KEY_LEN];
    char key[KEY_LEN];
    char magic[8];
};

static wchar_t self_path[PATH_SIZE];

static int64_t read_trailer(HANDLE file, struct trailer *trailer, char *key) {
    LARGE_INTEGER size, end;
    DWORD got = 0;
    if (!GetFileSizeEx(file, &size)) fail(L"cannot read", self_path);
    end.QuadPart = size.QuadPart - (int64_t)sizeof *trailer;
    if (end.QuadPart < 0 || !SetFilePointerEx(file, end, NULL, FILE_BEGIN)) damaged(self_path);
    if (!ReadFile(file, trailer, sizeof *trailer, &got, NULL) || got != sizeof *trailer) damaged(self_path);
    if (memcmp(trailer->magic, MAGIC, 8) || trailer->offset >= (uint64_t)end.QuadPart) damaged(self_path);
    for (int i = 0; i < KEY_LEN; i++) {
        key[i] = trailer->key[i];
        if (!key[i] || !strchr("0123456789abcdef", key[i])) damaged(self_path);
    }
    key[KEY_LEN] = 0;
    return end.QuadPart;
}

/* ---- cache */

/* Chooses the first usable folder: CODER_BINARY_CACHE, the user's local data, the user's temporary files. */
static void choose_cache(wchar_t *out) {
    wchar_t value[PATH_SIZE];
    const wchar_t *why = NULL;
    if (get_variable(L"CODER_BINARY_CACHE", value)) {
        join(out, value, L"");
        if (!(why = make_private_folder(out))) return;
        complain(L"CODER_BINARY_CACHE cannot be used:", out, why);
        exit(127);
    }
    static const wchar_t *const variables[] = {L"LOCALAPPDATA", L"USERPROFILE", L"TEMP"};
    static const wchar_t *const below[] = {L"coder\\dist", L"AppData\\Local\\coder\\dist", L"coder-dist"};
    for (int i = 0; i < 3; i++) {
        if (!get_variable(variables[i], value)) continue;
        join(out, value, below[i]);
        if (!(why = make_private_folder(out))) return;
    }
    complain(L"no private folder to unpack into; set CODER_BINARY_CACHE to one:", out, why ? why : L"is not set");
    exit(127);
}

static int is_complete(const wchar_t *folder) {
    wchar_t path[PATH_SIZE];
    join(path, folder, L".complete");
    return GetFileAttributesW(path) != INVALID_FILE_ATTRIBUTES;
}

/* A handle that keeps a folder from being removed; the process keeps it to its end. */
static HANDLE hold(const wchar_t *folder, DWORD sharing) {
    wchar_t path[PATH_SIZE];
    join(path, folder, L".lock");
    return CreateFileW(path, GENERIC_READ, sharing, NULL, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, NULL);
}

static void remove_if_unused(const wchar_t *folder) {
    HANDLE held = hold(folder, 0);
    if (held == INVALID_HANDLE_VALUE && GetLastError() != ERROR_FILE_NOT_FOUND) return;
    if (held != INVALID_HANDLE_VALUE) CloseHandle(held);
    remove_tree(folder);
}

static int is_old(const FILETIME *used) {
    ULARGE_INTEGER now, then;
    FILETIME current;
    GetSystemTimeAsFileTime(&current);
    now.LowPart = current.dwLowDateTime, now.HighPart = current.dwHighDateTime;
    then.LowPart = used->dwLowDateTime, then.HighPart = used->dwHighDateTime;
    return now.QuadPart > then.QuadPart && (now.QuadPart - then.QuadPart) / 10000000 > KEEP_UNUSED_SECONDS;
}

static void tidy(const wchar_t *cache, const wchar_t *key) {
    WIN32_FIND_DATAW entry;
    wchar_t pattern[PATH_SIZE], path[PATH_SIZE];
    join(pattern, cache, L"*");
    HANDLE listing = FindFirstFileW(pattern, &entry);
    if (listing == INVALID_HANDLE_VALUE) return;
    do {
        int is_partial = !wcsncmp(entry.cFileName, L".new-", 5);
        if (entry.cFileName[0] == L'.' && !is_partial) continue;
        join(path, cache, entry.cFileName);
        if (is_partial || (wcscmp(entry.cFileName, key) && is_old(&entry.ftLastWriteTime))) remove_if_unused(path);
    } while (FindNextFileW(listing, &entry));
    FindClose(listing);
}

static void give_name(const wchar_t *folder, const wchar_t *target) {
    for (int i = 0; i < ATTEMPTS; i++) {
        if (MoveFileExW(folder, target, 0)) return;
        if (is_complete(target)) { /* another start was first; its files are the same */
            remove_tree(folder);
            return;
        }
        if (GetFileAttributesW(target) != INVALID_FILE_ATTRIBUTES) remove_if_unused(target);
        Sleep(100);
    }
    fail(L"cannot create", target);
}

static void install(HANDLE file, const struct trailer *trailer, int64_t end, const wchar_t *cache, const char *key,
                    const wchar_t *target) {
    wchar_t folder[PATH_SIZE], name[64], path[PATH_SIZE];
    verify(file, (int64_t)trailer->offset, end, key, self_path);
    swprintf(name, 64, L".new-%lu-%llu", GetCurrentProcessId(), (unsigned long long)GetTickCount64());
    join(folder, cache, name);
    if (!CreateDirectoryW(folder, NULL)) fail(L"cannot create", folder);
    half_made = folder;
    join(path, folder, L".lock");
    write_file(path, "", 0);
    HANDLE held = hold(folder, FILE_SHARE_READ | FILE_SHARE_DELETE);
    unpack(file, (int64_t)trailer->offset, end, folder, self_path);
    join(path, folder, L".complete");
    write_file(path, "", 0);
    CloseHandle(held); /* Windows does not rename a folder with open files */
    give_name(folder, target);
    half_made = NULL;
}

/* ---- interpreter */

static HMODULE python;

static void *function(const char *name) {
    void *found = (void *)GetProcAddress(python, name);
    if (!found) fail(L"the unpacked program is damaged:", self_path);
    return found;
}

static char *utf8(const wchar_t *text) {
    int size = WideCharToMultiByte(CP_UTF8, 0, text, -1, NULL, 0, NULL, NULL);
    char *out = malloc((size_t)size + 1);
    if (!out) abort();
    WideCharToMultiByte(CP_UTF8, 0, text, -1, out, size, NULL, NULL);
    return out;
}

#include "interpreter.h"

/* Loads the interpreter and the libraries that modules in subfolders need by name. */
static void load_python(const wchar_t *folder) {
    static const wchar_t *const names[] = {L"vcruntime140.dll", L"vcruntime140_1.dll", L"python3.dll", L"" PYTHON_DLL};
    wchar_t path[PATH_SIZE];
    SetDefaultDllDirectories(LOAD_LIBRARY_SEARCH_DEFAULT_DIRS);
    AddDllDirectory(folder);
    for (int i = 3; i >= 0; i--) {
        join(path, folder, names[i]);
        HMODULE loaded = LoadLibraryExW(path, NULL, LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR | LOAD_LIBRARY_SEARCH_DEFAULT_DIRS);
        if (!loaded) fail(L"cannot load", path);
        if (i == 3) python = loaded;
    }
}

static int run(const wchar_t *folder, int argc, wchar_t **wide) {
    char **argv = calloc((size_t)argc + 1, sizeof *argv), *place = utf8(folder);
    if (!argv) abort();
    for (int i = 0; i < argc; i++) argv[i] = utf8(wide[i]);
    for (char *at = place; *at; at++)
        if (*at == '\\') *at = '/';
    load_python(folder);
    return run_python(place, utf8(self_path), argc, argv);
}

int wmain(int argc, wchar_t **argv) {
    struct trailer trailer;
    char key[KEY_LEN + 1];
    wchar_t cache[PATH_SIZE], target[PATH_SIZE], wide_key[KEY_LEN + 1];
    DWORD size = GetModuleFileNameW(NULL, self_path, PATH_SIZE);
    if (!size || size == PATH_SIZE) fail(L"cannot find", L"this program");
    HANDLE file = CreateFileW(self_path, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_DELETE, NULL, OPEN_EXISTING, 0, NULL);
    if (file == INVALID_HANDLE_VALUE) fail(L"cannot read", self_path);
    int64_t end = read_trailer(file, &trailer, key);
    for (int i = 0; i <= KEY_LEN; i++) wide_key[i] = (wchar_t)key[i];
    SetEnvironmentVariableW(L"CODER_SELF", self_path);
    choose_cache(cache);
    join(target, cache, wide_key);
    HANDLE held = INVALID_HANDLE_VALUE;
    for (int i = 0; i < ATTEMPTS && held == INVALID_HANDLE_VALUE; i++) {
        if (!is_complete(target)) {
            tidy(cache, wide_key); /* first, because it can free the required space */
            install(file, &trailer, end, cache, key, target);
        }
        held = hold(target, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE);
    }
    if (held == INVALID_HANDLE_VALUE) fail(L"another process removes what is unpacked into", cache);
    touch(target);
    CloseHandle(file);
    return run(target, argc, argv);
}
