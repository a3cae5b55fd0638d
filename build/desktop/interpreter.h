/* The interpreter inside a launcher; the file that includes this has `static void *function(const char *name)`, which
 * returns a function of the interpreter's library or does not return. */
#ifndef INTERPRETER_H
#define INTERPRETER_H

#include <stdint.h>
#include <stdio.h>

typedef struct init_config init_config;

/* PEP 741: the settings of build/starter.c by name. Returns whether the interpreter runs. */
static int start_python(char *folder, const char *self, int argc, char **argv) {
    init_config *(*create)(void) = function("PyInitConfig_Create");
    int (*set_int)(init_config *, const char *, int64_t) = function("PyInitConfig_SetInt");
    int (*set_text)(init_config *, const char *, const char *) = function("PyInitConfig_SetStr");
    int (*set_list)(init_config *, const char *, size_t, char *const *) = function("PyInitConfig_SetStrList");
    int (*get_error)(init_config *, const char **) = function("PyInitConfig_GetError");
    int (*start)(init_config *) = function("Py_InitializeFromInitConfig");
    init_config *config = create();
    const char *why = "out of memory";
    if (config && !set_int(config, "isolated", 1) && !set_int(config, "use_environment", 0) &&
        !set_int(config, "utf8_mode", 1) && !set_int(config, "site_import", 0) && !set_int(config, "parse_argv", 0) &&
        !set_int(config, "write_bytecode", 0) && !set_int(config, "optimization_level", 1) &&
        !set_int(config, "install_signal_handlers", 1) && !set_text(config, "home", folder) &&
        !set_text(config, "executable", self) && !set_list(config, "module_search_paths", 1, &folder) &&
        !set_list(config, "argv", (size_t)argc, argv) && !start(config))
        return 1;
    if (config) get_error(config, &why);
    fprintf(stderr, "coder: the interpreter did not start: %s\n", why);
    return 0;
}

/* Runs the program of an unpacked folder; returns the exit code. */
static int run_python(char *folder, const char *self, int argc, char **argv) {
    if (!start_python(folder, self, argc, argv)) return 127;
    void *(*import)(const char *) = function("PyImport_ImportModule");
    void *(*call)(void *, const char *, const char *, ...) = function("PyObject_CallMethod");
    void (*print)(void) = function("PyErr_Print");
    int (*finish)(void) = function("Py_FinalizeEx");
    void *start = import("_coder_start"), *done = start ? call(start, "run", "s", folder) : NULL;
    if (!done) {
        print(); /* SystemExit ends the process here with its code */
        return 1;
    }
    return finish() < 0 ? 120 : 0;
}

#endif
