"""OpenSSL for Windows, compiled here: the distribution of CPython for Windows has an unmaintained branch.

The source is the crate openssl-src, which contains OpenSSL as released; cargo fetches it and checks its hash. The
libraries keep the names and the binary interface of OpenSSL 3, with which Python's `_ssl` was built.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from desktop import sources

CRATE, VERSION = "openssl-src", "300.5.5+3.5.5"
SHA256 = "3f1787d533e03597a7934fd0a765f0d28e94ecc5fb7789f8053b1e699a56f709"
_SUFFIX, _NO_SUFFIX = '"-x64" : ""', '"" : ""'
"""The DLLs of mingw64 have a suffix; Python's modules import the names without one."""
LIBRARIES = ("libcrypto-3.dll", "libssl-3.dll")
CONFIGURATION = ("mingw64", "shared", "no-apps", "no-docs", "no-module", "no-tests", "no-legacy", "--libdir=lib")
FLAGS = ("-O2", "-DSIO_UDP_NETRESET=0x9800000F", "-static-libgcc", "-Wl,--no-insert-timestamp", "-Wl,-s")
_MKDEF = """use lib '.';
use configdata;
my %given;
while (@ARGV) { my $name = shift; $given{$name} = shift; }
open my $names, '<', $given{'--ordinals'} or die;
print "LIBRARY \\"$given{'--name'}-3.dll\\"\\nEXPORTS\\n";
while (<$names>) {
    my ($name, undef, undef, $about) = split;
    my ($exists, $platforms, undef, $features) = split /:/, $about // '';
    next if ($exists // '') ne 'EXIST';
    my @platforms = split /,/, $platforms;
    next if grep { $_ eq '!_WIN32' } @platforms;
    next if grep({ !/^!/ } @platforms) && !grep({ $_ eq '_WIN32' } @platforms);
    next if grep { my $under = my $dash = lc; $dash =~ tr/_/-/; $disabled{$under} || $disabled{$dash} }
        split /,/, $features // '';
    print "    $name\\n";
}
"""
"""The crate is for static libraries: it lacks OpenSSL's program that lists the names a library exports."""
_MANIFEST = f"""[package]
name = "fetch"
version = "0.0.0"
edition = "2021"
[lib]
path = "lib.rs"
[dependencies]
{CRATE} = "={VERSION}"
"""


def libraries() -> list[Path]:
    """Return the two libraries; the first call compiles them, which takes some minutes."""
    folder = sources.CACHE / f"openssl-{VERSION.partition('+')[2]}-windows-amd64"
    if not folder.exists():
        with tempfile.TemporaryDirectory(prefix="coder-openssl-") as temporary:
            made = compile_in(unpack(Path(temporary)))
            partial = folder.with_name(f".{folder.name}.new")
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            for path in made:
                shutil.copyfile(path, partial / path.name)
            partial.replace(folder)
    return [folder / name for name in LIBRARIES]


def unpack(work: Path) -> Path:
    """Fetch the crate and return OpenSSL's source. Raises SystemExit for another hash than the pinned one."""
    if shutil.which("cargo") is None:
        raise SystemExit("build: cargo not found, which fetches OpenSSL's source; on Debian: apt-get install cargo")
    (work / "Cargo.toml").write_text(_MANIFEST)
    (work / "lib.rs").touch()
    subprocess.run(["cargo", "vendor", "-q", "vendor"], cwd=work, check=True, stdout=subprocess.DEVNULL)
    if f'checksum = "{SHA256}"' not in (work / "Cargo.lock").read_text():
        raise SystemExit(f"build: {CRATE} {VERSION} has another hash than the pinned {SHA256}")
    return work / "vendor" / CRATE / "openssl"


def compile_in(source: Path) -> list[Path]:
    """Compile the libraries in a source folder."""
    print(f"compiling OpenSSL {VERSION.partition('+')[2]} for Windows (some minutes) …", file=sys.stderr)
    platform = source / "Configurations/platform/mingw.pm"
    text = platform.read_text()
    if _SUFFIX not in text:
        raise SystemExit("build: OpenSSL's names of libraries for Windows have changed")
    platform.write_text(text.replace(_SUFFIX, _NO_SUFFIX))
    (source / "util/mkdef.pl").write_text(_MKDEF)
    env = {**os.environ, "SOURCE_DATE_EPOCH": "315532800"}
    configure = ["perl", "Configure", "--cross-compile-prefix=x86_64-w64-mingw32-", *CONFIGURATION, *FLAGS]
    with (source / "build.log").open("wb") as log:
        # The libraries' own targets do not depend on the generated headers.
        for command in (configure, ["make", "build_generated"], ["make", f"-j{os.cpu_count() or 1}", *LIBRARIES]):
            done = subprocess.run(command, cwd=source, env=env, stdout=log, stderr=subprocess.STDOUT, check=False)
            if done.returncode:
                tail = (source / "build.log").read_text(errors="replace")[-2000:]
                raise SystemExit(f"build: OpenSSL did not compile:\n{tail}")
    return [source / name for name in LIBRARIES]
