"""Declarations of `coder stat` and its commands."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import Options, TableOptions, column_option, option, output_option

COLUMNS = ("host cpu", "host memory", "home disk", "container cpu", "container memory")


HOST: bool = option(
    False,
    "Measure the whole machine, even inside a container.",
)


PREFIX: str = option(
    "Gi",
    "Binary prefix of the printed unit, like Gi for gibibytes.",
    choices=("Ki", "Mi", "Gi", "Ti"),
)


class StatOptions(TableOptions):
    """Options of `coder stat`."""

    column: tuple[str, ...] = column_option(COLUMNS, COLUMNS)
    output: str = output_option()


class StatCpuOptions(Options):
    """Options of `coder stat cpu`."""

    host: bool = HOST
    output: str = output_option(("text", "json"), "text")


class StatDiskOptions(Options):
    """Options of `coder stat disk`."""

    output: str = output_option(("text", "json"), "text")
    path: str = option(
        "/",
        "Path of a directory on the disk to measure.",
    )
    prefix: str = PREFIX


class StatMemOptions(Options):
    """Options of `coder stat mem`."""

    host: bool = HOST
    output: str = output_option(("text", "json"), "text")
    prefix: str = PREFIX


STAT = Command(
    words="stat",
    summary="Show resource usage for the current workspace.",
    options=StatOptions,
    max_args=0,
    examples=(
        ("Show CPU, memory and disk usage", "coder stat"),
        ("Print JSON, for a template's metadata", "coder stat --output json"),
    ),
)

CPU = Command(
    words="stat cpu",
    summary="Show CPU usage, in cores.",
    options=StatCpuOptions,
    max_args=0,
    examples=(
        ("Show the CPU cores in use", "coder stat cpu"),
        ("Show CPU usage of the host", "coder stat cpu --host"),
    ),
)

DISK = Command(
    words="stat disk",
    summary="Show disk usage, in gigabytes.",
    options=StatDiskOptions,
    max_args=0,
    examples=(("Show usage of the disk that holds /home", "coder stat disk --path /home"),),
)

MEM = Command(
    words="stat mem",
    summary="Show memory usage, in gigabytes.",
    options=StatMemOptions,
    max_args=0,
    examples=(("Show memory usage in mebibytes", "coder stat mem --prefix Mi"),),
)
