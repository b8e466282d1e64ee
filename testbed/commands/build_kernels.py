# SPDX-License-Identifier: Apache-2.0
"""`./warpbed build-kernels`: build the guest kernel and the modules."""

from __future__ import annotations

import argparse
from pathlib import Path

from kernels import series as kernel_series
from testbed import ansible

HELP = "build the guest kernel and the modules"


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--series", default="default", help=f"{', '.join(kernel_series.NAMES)} or default")
    command.add_argument(
        "--arch",
        choices=["um", "um-sanitize", "x86"],
        default="um",
        help="um: the virtual host; um-sanitize: the same with KASAN, kmemleak and lockdep; x86: virtual machines",
    )
    command.add_argument("--source", type=Path, help="a kernel tree or tarball instead of Debian's source")


def main(options: argparse.Namespace) -> int:
    series = kernel_series.of(options.series)
    variables: dict[str, object] = {"kernel_build_series": series, "kernel_build_arch": options.arch}
    if options.source is not None:
        variables["kernel_build_source"] = str(options.source.resolve())
    return ansible.play("build_kernels.yml", variables, failed_early=1)
