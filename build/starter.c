/* The program of the unpacked folder: an interpreter whose modules are one file, mapped and read in place.
 *
 * PyInstaller's own start-up opens a zip archive for every module of the standard library, inflates the rest, starts
 * itself twice to set the library path and loads ctypes: half of a short command. The collected files stay as they are;
 * only the entry is ours. build/modules.py writes the module file, build/finder.py imports from it.
 *
 * Layout: [8 bytes magic][u32 entries][entries sorted by name: u32 name, name size, code, code size, kind][names][codes]
 * A function's name is the hash of its text: all texts together would take a MiB in every process.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <fcntl.h>
#include <locale.h>
#include <marshal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sha256.h"

#define MAGIC "CODERMD3"
#define PATH_SIZE 4096
#define FUNCTION_DIGITS 32 /* of the hash */
/* PyInstaller's names: coder/base/child_env.py removes them from children. */
#define HOME_MARK "_PYI_APPLICATION_HOME_DIR"
#define PROGRAM_MARK "_PYI_ARCHIVE_FILE"

enum kind { MODULE, PACKAGE, NAMESPACE, FUNCTION };
struct entry {
    uint32_t name, name_size, code, code_size, kind;
};
/* The full program's own modules come first; the slim program's file below them is unchanged. */
static struct mapped {
    const char *name, *file; /* the file's beginning: entries and names */
    const struct entry *entries;
    uint32_t count;
    int descriptor;
} files[] = {{"modules-full.bin", NULL, NULL, 0, -1}, {"modules.bin", NULL, NULL, 0, -1}};
#define FILES (sizeof files / sizeof *files)
struct found {
    const struct entry *entry;
    int descriptor;
};
/* Temporarily mapped code. */
struct window {
    char *start, *code;
    size_t size;
};
static char program[PATH_SIZE], internal[PATH_SIZE];

static const struct entry *find_in(const struct mapped *from, const char *name, size_t size) {
    uint32_t low = 0, high = from->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        const struct entry *at = from->entries + middle;
        int order = memcmp(name, from->file + at->name, size < at->name_size ? size : at->name_size);
        if (!order) order = size < at->name_size ? -1 : size > at->name_size;
        if (!order) return at;
        if (order < 0) high = middle;
        else low = middle + 1;
    }
    return NULL;
}

static struct found find(const char *name, size_t size) {
    for (size_t i = 0; i < FILES; i++) {
        const struct entry *at = find_in(files + i, name, size);
        if (at) return (struct found){at, files[i].descriptor};
    }
    return (struct found){NULL, -1};
}

static struct found asked(PyObject *name) {
    Py_ssize_t size;
    const char *text = PyUnicode_AsUTF8AndSize(name, &size);
    if (!text) PyErr_Clear();
    return text ? find(text, (size_t)size) : (struct found){NULL, -1};
}

static PyObject *module_kind(PyObject *self, PyObject *name) {
    struct found found = asked(name);
    (void)self;
    if (!found.entry) Py_RETURN_NONE;
    return PyLong_FromUnsignedLong(found.entry->kind);
}

/* Code is read once; a permanent mapping would count as this process's memory, and more than was read: kernels
 * map the neighbourhood of a touched page, up to 2 MB since Linux 6.18. So each read has its own mapping. */
static struct window look(struct found found) {
    size_t before = found.entry->code & 4095, size = before + found.entry->code_size;
    char *start = mmap(NULL, size, PROT_READ, MAP_PRIVATE, found.descriptor, found.entry->code - before);
    if (start == MAP_FAILED) return (struct window){NULL, NULL, 0};
    return (struct window){start, start + before, size};
}

static PyObject *code_of(struct found found) {
    if (!found.entry || !found.entry->code_size) Py_RETURN_NONE;
    struct window seen = look(found);
    if (!seen.start) return PyErr_SetFromErrno(PyExc_OSError);
    PyObject *code = PyMarshal_ReadObjectFromString(seen.code, found.entry->code_size);
    munmap(seen.start, seen.size);
    return code;
}

static PyObject *module_code(PyObject *self, PyObject *name) {
    (void)self;
    return code_of(asked(name));
}

static PyObject *function_code(PyObject *self, PyObject *text) {
    Py_ssize_t size;
    const char *bytes = PyUnicode_AsUTF8AndSize(text, &size);
    char name[1 + 64 + 1] = "=";
    struct sha256 hash;
    (void)self;
    if (!bytes) return NULL;
    sha256_begin(&hash);
    sha256_add(&hash, bytes, (size_t)size);
    sha256_end(&hash, name + 1);
    return code_of(find(name, 1 + FUNCTION_DIGITS));
}

static PyMethodDef methods[] = {
    {"kind", module_kind, METH_O, "0 module, 1 package, 2 namespace package, 3 function; None: not here"},
    {"code", module_code, METH_O, "The code object of a name; None when there is none."},
    {"function", function_code, METH_O, "The code object of a function's text; None when there is none."},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_modules", NULL, -1, methods, NULL, NULL, NULL, NULL};
static PyObject *make_module(void) { return PyModule_Create(&definition); }

static void fail(const char *what) {
    fprintf(stderr, "coder: the unpacked program is damaged (%s); remove its folder %s\n", what, internal);
    exit(127);
}

static void map_modules(struct mapped *into) {
    char path[PATH_SIZE + 32];
    struct stat info;
    struct { /* start of the file */
        char magic[8];
        uint32_t count;
        struct entry first;
    } head;
    snprintf(path, sizeof path, "%s/%s", internal, into->name);
    into->descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (into->descriptor < 0) return;
    if (fstat(into->descriptor, &info) || read(into->descriptor, &head, sizeof head) != sizeof head) fail(into->name);
    if (memcmp(head.magic, MAGIC, 8) || !head.count || head.first.code > info.st_size) fail(into->name);
    into->file = mmap(NULL, head.first.code, PROT_READ, MAP_PRIVATE, into->descriptor, 0);
    if (into->file == MAP_FAILED) fail(into->name);
    into->count = head.count;
    into->entries = (const struct entry *)(into->file + 12);
}

/* Path of the folder's libraries; children get the user's own value back (coder/base/child_env.py). */
static void set_library_path(char **argv) {
    const char *mark = getenv(HOME_MARK), *given = getenv("LD_LIBRARY_PATH");
    char path[2 * PATH_SIZE];
    if (mark && !strcmp(mark, internal)) return;
    if (given) setenv("LD_LIBRARY_PATH_ORIG", given, 1);
    else unsetenv("LD_LIBRARY_PATH_ORIG");
    snprintf(path, sizeof path, given && *given ? "%s:%.4000s" : "%s", internal, given);
    setenv("LD_LIBRARY_PATH", path, 1);
    setenv(HOME_MARK, internal, 1);
    execv(program, argv);
    fail("exec");
}

/* Modules that the interpreter imports before our finder can exist. */
static void add_early_modules(void) {
    static const char *const early[] = {"encodings", "encodings.aliases", "encodings.utf_8", "_coder_start"};
    static struct _frozen table[sizeof early / sizeof *early + 1];
    for (size_t i = 0; i < sizeof early / sizeof *early; i++) {
        struct found found = find(early[i], strlen(early[i]));
        if (!found.entry) fail(early[i]);
        table[i].name = early[i];
        table[i].code = (const unsigned char *)look(found).code; /* stays mapped: read at any time */
        if (!table[i].code) fail(early[i]);
        table[i].size = (int)found.entry->code_size;
        table[i].is_package = found.entry->kind == PACKAGE;
    }
    PyImport_FrozenModules = table;
    PyImport_AppendInittab("_modules", make_module);
}

static void check(PyStatus status) {
    if (PyStatus_Exception(status)) Py_ExitStatusException(status);
}

static void start_interpreter(int argc, char **argv) {
    PyPreConfig before;
    PyConfig config;
    char path[PATH_SIZE + 64];
    PyPreConfig_InitIsolatedConfig(&before);
    setlocale(LC_CTYPE, "");
    const char *locale = setlocale(LC_CTYPE, NULL);
    before.utf8_mode = locale && (!strcmp(locale, "C") || !strcmp(locale, "POSIX")); /* PEP 540 */
    check(Py_PreInitialize(&before));
    PyConfig_InitIsolatedConfig(&config);
    config.install_signal_handlers = 1;
    config.site_import = 0;
    config.write_bytecode = 0;
    config.optimization_level = 1;
    config.parse_argv = 0;
    config.module_search_paths_set = 1;
    check(PyConfig_SetBytesArgv(&config, argc, argv));
    check(PyConfig_SetBytesString(&config, &config.executable, program));
    check(PyConfig_SetBytesString(&config, &config.home, internal));
    const char *const places[] = {"%s/python" PYTHON_NUMBER "/lib-dynload", "%s"};
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, places[i], internal);
        wchar_t *wide = Py_DecodeLocale(path, NULL);
        if (!wide) fail("path");
        check(PyWideStringList_Append(&config.module_search_paths, wide));
        PyMem_RawFree(wide);
    }
    check(Py_InitializeFromConfig(&config));
    PyConfig_Clear(&config);
}

/* Run by the payload's own loader (build/host_libc.c), the process is the loader, and the launcher sets our path. */
static void find_program(void) {
    const char *said = getenv(PROGRAM_MARK);
    ssize_t size = readlink("/proc/self/exe", program, sizeof program - 16);
    program[size > 0 ? size : 0] = 0;
    char *slash = strrchr(program, '/');
    if (!slash) fail("/proc/self/exe");
    if (!strncmp(slash, "/ld-", 4) && said && strlen(said) < sizeof program - 16 && strrchr(said, '/')) {
        strcpy(program, said);
        slash = strrchr(program, '/');
    }
    memcpy(internal, program, (size_t)(slash - program));
    strcpy(internal + (slash - program), "/_internal");
}

int main(int argc, char **argv) {
    find_program();
    set_library_path(argv);
    for (size_t i = 0; i < FILES; i++) map_modules(files + i);
    add_early_modules();
    start_interpreter(argc, argv);
    PyObject *start = PyImport_ImportModule("_coder_start");
    PyObject *done = start ? PyObject_CallMethod(start, "run", "s", internal) : NULL;
    if (!done) {
        PyErr_Print(); /* SystemExit ends the process here with its code */
        return 1;
    }
    return Py_FinalizeEx() < 0 ? 120 : 0;
}
