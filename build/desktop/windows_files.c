/* Files of Windows for the launcher; see windows_files.h. */
#include "windows_files.h"

#include <aclapi.h>
#include <sddl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "../sha256.h"

const wchar_t *half_made;

/* The owner, the system and administrators; nothing is inherited from the folder above. */
static const wchar_t PRIVATE[] = L"D:P(A;OICI;FA;;;OW)(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)";
#define WRITES (FILE_WRITE_DATA | FILE_APPEND_DATA | DELETE | WRITE_DAC | WRITE_OWNER | GENERIC_WRITE | GENERIC_ALL)

static void print(const wchar_t *text) {
    char line[4 * PATH_SIZE];
    DWORD done;
    int size = WideCharToMultiByte(CP_UTF8, 0, text, -1, line, sizeof line, NULL, NULL);
    if (size > 1) WriteFile(GetStdHandle(STD_ERROR_HANDLE), line, (DWORD)size - 1, &done, NULL);
}

void complain(const wchar_t *what, const wchar_t *path, const wchar_t *why) {
    print(L"coder: ");
    print(what);
    print(L" ");
    print(path);
    print(L": ");
    print(why);
    print(L"\r\n");
}

static void give_up(void) {
    if (half_made) remove_tree(half_made);
    exit(127);
}

void fail(const wchar_t *what, const wchar_t *path) {
    wchar_t why[512] = L"";
    DWORD code = GetLastError();
    DWORD size = FormatMessageW(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS, NULL, code, 0, why, 512, NULL);
    while (size && (why[size - 1] == L'\n' || why[size - 1] == L'\r')) why[--size] = 0;
    if (!size) swprintf(why, 512, L"error %lu", code);
    complain(what, path, why);
    if (code == ERROR_DISK_FULL || code == ERROR_HANDLE_DISK_FULL)
        print(L"coder: the program unpacks itself once: free some space, or set CODER_BINARY_CACHE to another folder\r\n");
    give_up();
    abort();
}

void damaged(const wchar_t *file_name) {
    complain(L"the program file", file_name, L"is damaged; download it again");
    give_up();
    abort();
}

void join(wchar_t *out, const wchar_t *left, const wchar_t *right) {
    int size = swprintf(out, PATH_SIZE, L"%ls%ls%ls", left, *right ? L"\\" : L"", right);
    if (size < 0 || size >= PATH_SIZE) {
        SetLastError(ERROR_FILENAME_EXCED_RANGE);
        fail(L"path too long:", left);
    }
}

int get_variable(const wchar_t *name, wchar_t *out) {
    DWORD size = GetEnvironmentVariableW(name, out, PATH_SIZE);
    return size && size < PATH_SIZE;
}

void touch(const wchar_t *folder) {
    FILETIME now;
    HANDLE opened = CreateFileW(folder, FILE_WRITE_ATTRIBUTES, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
                                NULL, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, NULL);
    if (opened == INVALID_HANDLE_VALUE) return;
    GetSystemTimeAsFileTime(&now);
    SetFileTime(opened, NULL, NULL, &now);
    CloseHandle(opened);
}

void remove_tree(const wchar_t *folder) {
    WIN32_FIND_DATAW entry;
    wchar_t *path = malloc(2 * PATH_SIZE * sizeof *path);
    if (!path) return;
    join(path, folder, L"*");
    HANDLE listing = FindFirstFileW(path, &entry);
    for (int more = listing != INVALID_HANDLE_VALUE; more; more = FindNextFileW(listing, &entry)) {
        if (!wcscmp(entry.cFileName, L".") || !wcscmp(entry.cFileName, L"..")) continue;
        join(path, folder, entry.cFileName);
        if (!(entry.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY)) DeleteFileW(path);
        else if (entry.dwFileAttributes & FILE_ATTRIBUTE_REPARSE_POINT) RemoveDirectoryW(path);
        else remove_tree(path);
    }
    if (listing != INVALID_HANDLE_VALUE) FindClose(listing);
    RemoveDirectoryW(folder);
    free(path);
}

/* A full disk can also be a write of fewer bytes, which is no error of the system. */
static void write_all(HANDLE file, const void *data, DWORD size, const wchar_t *path) {
    DWORD done = 0;
    BOOL written = WriteFile(file, data, size, &done, NULL);
    if (written && done == size) return;
    if (written) SetLastError(ERROR_DISK_FULL);
    fail(L"cannot write", path);
}

void write_file(const wchar_t *path, const char *data, DWORD size) {
    HANDLE file = CreateFileW(path, GENERIC_WRITE, 0, NULL, CREATE_ALWAYS, FILE_ATTRIBUTE_NORMAL, NULL);
    if (file == INVALID_HANDLE_VALUE) fail(L"cannot write", path);
    if (size) write_all(file, data, size, path);
    CloseHandle(file);
}

/* ---- private folders */

static PSID of_user(void) {
    static char buffer[512];
    HANDLE token;
    DWORD size;
    if (!OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &token)) return NULL;
    BOOL known = GetTokenInformation(token, TokenUser, buffer, sizeof buffer, &size);
    CloseHandle(token);
    return known ? ((TOKEN_USER *)buffer)->User.Sid : NULL;
}

static int is_trusted(PSID sid) {
    static const WELL_KNOWN_SID_TYPE known[] = {WinLocalSystemSid, WinBuiltinAdministratorsSid, WinCreatorOwnerSid,
                                               WinCreatorOwnerRightsSid};
    PSID user = of_user();
    if (user && EqualSid(sid, user)) return 1;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (IsWellKnownSid(sid, known[i])) return 1;
    return 0;
}

/* Another user who can write the folder could run code as this user. */
static const wchar_t *who_else_writes(const wchar_t *path) {
    PSECURITY_DESCRIPTOR described = NULL;
    PSID owner = NULL;
    PACL list = NULL;
    const wchar_t *why = NULL;
    DWORD asked = OWNER_SECURITY_INFORMATION | DACL_SECURITY_INFORMATION;
    if (GetNamedSecurityInfoW(path, SE_FILE_OBJECT, asked, &owner, NULL, &list, NULL, &described))
        return NULL; /* a file system without owners */
    if (owner && !is_trusted(owner)) why = L"belongs to another user";
    for (DWORD i = 0; list && !why && i < list->AceCount; i++) {
        ACCESS_ALLOWED_ACE *entry;
        if (!GetAce(list, i, (void **)&entry) || entry->Header.AceType != ACCESS_ALLOWED_ACE_TYPE) continue;
        if (entry->Header.AceFlags & INHERIT_ONLY_ACE || !(entry->Mask & WRITES)) continue;
        if (!is_trusted((PSID)&entry->SidStart)) why = L"can be written by others";
    }
    LocalFree(described);
    return why;
}

const wchar_t *make_private_folder(const wchar_t *path) {
    static wchar_t copy[PATH_SIZE];
    SECURITY_ATTRIBUTES attributes = {sizeof attributes, NULL, FALSE};
    join(copy, path, L"");
    for (wchar_t *at = copy + 3; *at; at++) {
        if (*at != L'\\' && *at != L'/') continue;
        wchar_t before = *at;
        *at = 0;
        CreateDirectoryW(copy, NULL); /* the last one reports */
        *at = before;
    }
    if (!ConvertStringSecurityDescriptorToSecurityDescriptorW(PRIVATE, SDDL_REVISION_1, &attributes.lpSecurityDescriptor,
                                                              NULL))
        attributes.lpSecurityDescriptor = NULL;
    int made = CreateDirectoryW(copy, &attributes);
    DWORD code = GetLastError();
    LocalFree(attributes.lpSecurityDescriptor);
    if (made) return NULL;
    if (code != ERROR_ALREADY_EXISTS) return L"cannot be created";
    DWORD kind = GetFileAttributesW(copy);
    if (kind == INVALID_FILE_ATTRIBUTES || !(kind & FILE_ATTRIBUTE_DIRECTORY)) return L"is no folder";
    return who_else_writes(copy);
}

/* ---- unpacking */

struct payload {
    HANDLE file;
    int64_t left;
    const wchar_t *name;
    ZSTD_DStream *stream;
    ZSTD_inBuffer in;
    size_t frame_left;
    char block[1 << 17];
};

static DWORD read_part(HANDLE file, void *block, int64_t left, size_t most, const wchar_t *name) {
    DWORD got = 0;
    if (!ReadFile(file, block, (DWORD)(left < (int64_t)most ? left : (int64_t)most), &got, NULL)) fail(L"cannot read", name);
    if (!got) damaged(name);
    return got;
}

static void seek(HANDLE file, int64_t offset, const wchar_t *name) {
    LARGE_INTEGER place;
    place.QuadPart = offset;
    if (!SetFilePointerEx(file, place, NULL, FILE_BEGIN)) fail(L"cannot read", name);
}

void verify(HANDLE file, int64_t offset, int64_t end, const char *key, const wchar_t *file_name) {
    static char block[1 << 18];
    struct sha256 hash;
    char digits[65];
    sha256_begin(&hash);
    for (seek(file, offset, file_name); offset < end;) {
        DWORD got = read_part(file, block, end - offset, sizeof block, file_name);
        sha256_add(&hash, block, got);
        offset += got;
    }
    sha256_end(&hash, digits);
    if (strncmp(digits, key, strlen(key))) damaged(file_name);
}

static void read_exactly(struct payload *payload, void *buffer, size_t size) {
    ZSTD_outBuffer out = {buffer, size, 0};
    while (out.pos < size) {
        if (payload->in.pos == payload->in.size && payload->left) {
            DWORD got = read_part(payload->file, payload->block, payload->left, sizeof payload->block, payload->name);
            payload->left -= got;
            payload->in = (ZSTD_inBuffer){payload->block, got, 0};
        }
        size_t before = out.pos, eaten = payload->in.pos;
        payload->frame_left = ZSTD_decompressStream(payload->stream, &out, &payload->in);
        if (ZSTD_isError(payload->frame_left)) damaged(payload->name);
        if (out.pos == before && payload->in.pos == eaten && payload->in.pos == payload->in.size && !payload->left)
            damaged(payload->name);
    }
}

static unsigned long octal(const char *text, int length) {
    unsigned long value = 0;
    for (int i = 0; i < length && text[i] >= '0' && text[i] <= '7'; i++) value = value * 8 + (unsigned)(text[i] - '0');
    return value;
}

static void write_member(struct payload *payload, const wchar_t *path, unsigned long size) {
    static char block[1 << 16];
    unsigned long padded = (size + 511) / 512 * 512;
    HANDLE out = CreateFileW(path, GENERIC_WRITE, 0, NULL, CREATE_ALWAYS, FILE_ATTRIBUTE_NORMAL, NULL);
    if (out == INVALID_HANDLE_VALUE) fail(L"cannot write", path);
    while (padded) {
        unsigned long part = padded < sizeof block ? padded : sizeof block, wanted = size < part ? size : part;
        read_exactly(payload, block, part);
        if (wanted) write_all(out, block, wanted, path);
        size -= wanted;
        padded -= part;
    }
    if (!CloseHandle(out)) fail(L"cannot write", path);
}

/* The archive is ours, but a damaged one must not write outside the folder. */
static int is_inside(const char *name) {
    return *name && *name != '/' && !strchr(name, '\\') && !strchr(name, ':') && strncmp(name, "../", 3) &&
           !strstr(name, "/../");
}

static void read_name(struct payload *payload, unsigned long size, char *name) {
    size_t padded = (size + 511) / 512 * 512;
    if (padded >= PATH_SIZE) damaged(payload->name);
    read_exactly(payload, name, padded);
    name[size] = 0;
}

static void place_of(wchar_t *out, const wchar_t *into, const char *name, const wchar_t *file_name) {
    wchar_t wide[PATH_SIZE];
    if (!is_inside(name) || !MultiByteToWideChar(CP_UTF8, 0, name, -1, wide, PATH_SIZE)) damaged(file_name);
    size_t length = wcslen(wide);
    if (length && wide[length - 1] == L'/') wide[length - 1] = 0;
    for (wchar_t *at = wide; *at; at++)
        if (*at == L'/') *at = L'\\';
    join(out, into, wide);
}

void unpack(HANDLE file, int64_t offset, int64_t end, const wchar_t *into, const wchar_t *file_name) {
    static struct payload payload;
    static char header[512], long_name[PATH_SIZE], name[101];
    wchar_t path[PATH_SIZE];
    payload = (struct payload){.file = file, .left = end - offset, .name = file_name, .stream = ZSTD_createDStream()};
    if (!payload.stream) fail(L"out of memory:", file_name);
    ZSTD_DCtx_setParameter(payload.stream, ZSTD_d_windowLogMax, 27);
    for (seek(file, offset, file_name);;) {
        read_exactly(&payload, header, sizeof header);
        if (!header[0]) break; /* the end of the archive: its checksum is the hash that verify() compared */
        unsigned long size = octal(header + 124, 12);
        if (header[156] == 'L') {
            read_name(&payload, size, long_name);
            continue;
        }
        memcpy(name, header, 100);
        place_of(path, into, long_name[0] ? long_name : name, file_name);
        long_name[0] = 0;
        if (header[156] != '5') write_member(&payload, path, size);
        else if (!CreateDirectoryW(path, NULL) && GetLastError() != ERROR_ALREADY_EXISTS) fail(L"cannot create", path);
    }
    ZSTD_freeDStream(payload.stream);
}
