"""Small programs for a Windows machine, compiled here: what its own commands cannot do, or Wine's lack."""

from __future__ import annotations

import subprocess

from tests.kit.wine.machine import COMPILER, Machine

SOURCES = {
    # Copies its input to its output, byte by byte, and ends with code 3.
    "copy": """#include <fcntl.h>
#include <io.h>
#include <stdio.h>
int main(void) {
    static char block[1 << 16];
    int size;
    _setmode(0, _O_BINARY);
    _setmode(1, _O_BINARY);
    while ((size = _read(0, block, sizeof block)) > 0) _write(1, block, size);
    return 3;
}
""",
    # Prints the size of its terminal after every line of input.
    "size": """#include <windows.h>
#include <stdio.h>
int main(void) {
    char line[256];
    CONSOLE_SCREEN_BUFFER_INFO info;
    HANDLE out = GetStdHandle(STD_OUTPUT_HANDLE);
    while (fgets(line, sizeof line, stdin)) {
        if (!GetConsoleScreenBufferInfo(out, &info)) return 4;
        printf("%dx%d is the size\\n", info.srWindow.Right - info.srWindow.Left + 1,
               info.srWindow.Bottom - info.srWindow.Top + 1);
        fflush(stdout);
    }
    return 0;
}
""",
    # Starts itself without a console of its own, and waits for ever.
    "outlast": """#include <windows.h>
#include <stdio.h>
int main(int argc, char **argv) {
    STARTUPINFOA start = {sizeof start};
    PROCESS_INFORMATION process;
    char line[MAX_PATH + 8];
    if (argc > 1) Sleep(INFINITE);
    snprintf(line, sizeof line, "\\"%s\\" wait", argv[0]);
    return !CreateProcessA(NULL, line, NULL, NULL, FALSE, DETACHED_PROCESS, NULL, NULL, &start, &process);
}
""",
    # Answers `version --output json` as a program of the release NEWER (tests/kit/programs/releases.py).
    "newer": """#include <stdio.h>
int main(void) {
    puts("{\\"version\\": \\"v2.35.0\\", \\"slim\\": true}");
    return 0;
}
""",
    # Writes a word with a letter in the code page of consoles.
    "oem": """#include <windows.h>
#include <stdio.h>
int main(void) {
    char letter[8];
    int size = WideCharToMultiByte(CP_OEMCP, 0, L"\\u00e9", 1, letter, sizeof letter, NULL, NULL);
    printf("caf%.*s is written\\n", size, letter);
    return 0;
}
""",
}


def install_program(machine: Machine, name: str) -> str:
    """Compile a program of `SOURCES` into the root of drive C; return its path there."""
    source, program = machine.prefix / f"{name}.c", machine.drive / f"{name}.exe"
    if not program.exists():
        source.write_text(SOURCES[name])
        subprocess.run([COMPILER, "-o", str(program), str(source)], check=True)
    return f"C:\\{name}.exe"
