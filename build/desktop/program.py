"""Build of one program for Windows or macOS: collect, check, pack."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import deb
import packing
import sbom

from desktop import hot_modules, native, openssl, sources
from desktop.sources import Target

HERE = Path(__file__).resolve().parent
MINGW = "x86_64-w64-mingw32-"
PYTHON_LIBRARY = f"python{sources.PYTHON.replace('.', '')}"
WINDOWS_LIBRARIES = ("python314.dll", "lib/vcruntime140.dll", "lib/vcruntime140_1.dll")
"""Libraries of the distribution that every program needs; others are found by the imports of native files."""
IMAGE_BASE = "0x337490000"
"Of python3.dll: an address that no other library of the program prefers."
MACOS_LIBRARY = f"libpython{sources.PYTHON}.dylib"
MACOS_ABI = "11.0"
"Of the launcher."
ZIG = {"amd64": "x86_64", "arm64": "aarch64"}
MACOS = (15, 7)
"Oldest macOS that the distributions of CPython run on."
LEVEL, QUICK_LEVEL = 19, 3


def build(target: Target, out: Path, *, quick: bool, pure: bool = False) -> Path:
    """Build a program and return its path. Raises SystemExit with the reason."""
    print(f"{target.name}: collecting …", file=sys.stderr)
    work = out / "work" / target.name
    folder = work / "coder"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    collect(target, folder, hot_modules.folder(quick=quick) if target.is_windows and not pure else None)
    add_libraries(target, folder)
    processor = target.name.partition("-")[2]
    if found := native.problems(folder, processor, windows=target.is_windows, newest=MACOS):
        raise SystemExit("build: " + "\n".join(found))
    check_openssl(folder)
    print(f"{target.name}: packing …", file=sys.stderr)
    payload = packing.pack(folder, QUICK_LEVEL if quick else LEVEL)
    if target.is_windows:
        program = packing.slim_program(windows_launcher(work).read_bytes(), payload)
    else:
        program = macos_program(work, processor, payload)
    packing.write(out / target.program, program)
    sbom.write(out / f"{target.program}.cdx.json", bill(target, folder))
    shutil.rmtree(work, ignore_errors=True)
    return out / target.program


def collect(target: Target, folder: Path, compiled: Path | None) -> None:
    """Run collect.py with an interpreter of the target's version."""
    library = sources.interpreter(target.classifier) / ("lib" if target.is_windows else f"lib/python{sources.PYTHON}")
    command = [*sources.host_python(), str(HERE / "collect.py"), "--target", target.name, "--out", str(folder)]
    command += ["--library", str(library), "--site", str(sources.site_packages(target))]
    command += ["--compiled", str(compiled)] if compiled else []
    if subprocess.run(command, check=False, stdout=sys.stderr).returncode:
        raise SystemExit(f"build: {target.name} lacks modules, see above")


def add_libraries(target: Target, folder: Path) -> None:
    """Add the interpreter's library and every library that native files import and the distribution has."""
    distribution = sources.interpreter(target.classifier)
    if not target.is_windows:
        shutil.copyfile(distribution / MACOS_LIBRARY, folder / MACOS_LIBRARY)
        (folder / MACOS_LIBRARY).chmod(0o755)
        return
    for name in WINDOWS_LIBRARIES:
        shutil.copyfile(distribution / name, folder / Path(name).name)
    for path in openssl.libraries():
        shutil.copyfile(path, folder / path.name)
    make_stable_abi(folder)
    todo = list(folder.rglob("*"))
    while todo:
        for library in [name for image in native.images(todo.pop()) for name in image.imports]:
            source, copy = distribution / "lib" / library.lower(), folder / library.lower()
            if source.is_file() and not copy.exists():
                shutil.copyfile(source, copy)
                todo.append(copy)


def make_stable_abi(folder: Path) -> None:
    """Create python3.dll, which the distribution lacks: wheels for several versions of Python import it. It forwards
    every name to the interpreter's library."""
    library = PYTHON_LIBRARY
    names = [name for name in native.images(folder / f"{library}.dll")[0].exports if name.startswith(("Py", "_Py"))]
    definition, entry = folder.parent / "python3.def", folder.parent / "python3.c"
    forwards = "".join(f"  {name}={library}.{name}\n" for name in sorted(names))
    definition.write_text(f"LIBRARY python3.dll\nEXPORTS\n{forwards}")
    entry.write_text("int __stdcall DllMain(void *module, unsigned reason, void *rest) { return 1; }\n")
    command = [f"{MINGW}gcc", "-shared", "-s", "-nostdlib", "-Wl,-e,DllMain", "-Wl,--no-insert-timestamp"]
    command.append(f"-Wl,--image-base={IMAGE_BASE}")  # the default is a hash of the output's path
    run([*command, "-o", str(folder / "python3.dll"), str(entry), str(definition)], cwd=folder.parent)


def windows_launcher(work: Path) -> Path:
    """Compile the launcher."""
    made, resources = work / "launcher.exe", work / "resources.o"
    run([f"{MINGW}windres", str(HERE / "launcher_windows.rc"), str(resources)], cwd=HERE)
    command = [f"{MINGW}gcc", "-O2", "-Wall", "-Wextra", "-Wno-cast-function-type", "-municode", "-static", "-s"]
    command += ["-D_WIN32_WINNT=0x0A00", f'-DPYTHON_DLL="{PYTHON_LIBRARY}.dll"', f"-I{sources.zstd_source()}"]
    command += ["-Wl,--no-insert-timestamp", "-Wl,--gc-sections"]
    zstd = zstd_object([f"{MINGW}gcc"])
    files = [HERE / "launcher_windows.c", HERE / "windows_files.c", HERE.parent / "sha256.c", zstd, resources]
    run([*command, "-o", str(made), *map(str, files), "-ladvapi32"], cwd=work)
    return made


def macos_program(work: Path, processor: str, payload: bytes) -> bytes:
    """Compile the launcher with the payload as a section; zig's linker signs it ad hoc for arm64."""
    (work / "payload.bin").write_bytes(payload)
    made = work / "launcher"
    compiler = [sources.zig(), "cc", "-target", f"{ZIG[processor]}-macos.{MACOS_ABI}"]
    defined = [f'-DKEY="{packing.key_of(payload).decode()}"', f"-DPAYLOAD_SIZE={len(payload)}"]
    defined += [f'-DPROGRAM="{MACOS_LIBRARY}"', f"-I{sources.zstd_source()}"]
    files = [HERE / "launcher_macos.c", *(HERE.parent / name for name in ("cache.c", "unpack.c", "sha256.c"))]
    # -s: the debug map has paths and times of object files.
    command = [*compiler, "-O2", "-s", "-Wall", "-Wextra", *defined, "-o", str(made), *map(str, files)]
    run([*command, str(zstd_object(compiler, processor))], cwd=work)
    (image,) = native.images(made)
    if image.machine != processor or not (image.signed or processor == "amd64"):
        raise SystemExit(f"build: the launcher is for {image.machine}, or not signed")
    program = made.read_bytes()
    if files[0].stem.encode() in program:
        raise SystemExit("build: the linker left paths of this machine in the launcher")
    if payload not in program:
        raise SystemExit("build: the linker left the payload out of the launcher")
    return program


def zstd_object(compiler: list[str], name: str = "windows") -> Path:
    """Return zstd compiled for a target; it takes half a minute, so the result is kept."""
    kept = sources.zstd_source() / f"{name}.o"
    if not kept.exists():
        options = ["-O2", "-DZSTD_DISABLE_ASM=1", "-ffunction-sections", "-fdata-sections", "-c", "zstd.c"]
        made = kept.with_suffix(".new")
        run([*compiler, *options, "-o", str(made)], cwd=kept.parent)
        made.replace(kept)
    return kept


def run(command: list[str], cwd: Path) -> None:
    if shutil.which(command[0]) is None:
        raise SystemExit(f"build: {command[0]} not found; on Debian: apt-get install gcc-mingw-w64-x86-64")
    if subprocess.run(command, check=False, cwd=cwd).returncode:
        raise SystemExit(f"build: {command[0]} failed")


def check_openssl(folder: Path) -> None:
    """Raise SystemExit unless the program contains the pinned version of OpenSSL."""
    found = sbom.openssl_versions(path for path in folder.glob("*.*") if "ssl" in path.name or "libcrypto" in path.name)
    if sources.OPENSSL not in found:
        raise SystemExit(f"build: OpenSSL {', '.join(sorted(found)) or 'not found'}; pinned is {sources.OPENSSL}")


def bill(target: Target, folder: Path) -> dict[str, Any]:
    """Return the CycloneDX document of a program."""
    python = sources.VERSION.partition("-")[0]
    parts = [sbom.component_of("platform", "python", python, f"pkg:generic/python@{python}")]
    parts += [sbom.component_of("library", "openssl", sources.OPENSSL, f"pkg:generic/openssl@{sources.OPENSSL}")]
    packages = [*sources.pinned_versions(target), ("zstd", sources.ZSTD.partition("==")[2])]
    parts += [sbom.component_of("library", name, version, f"pkg:pypi/{name}@{version}") for name, version in packages]
    parts += sbom.linked_openssl(folder)
    return sbom.document(target.program, deb.version(), parts)
