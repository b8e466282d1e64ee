# SPDX-License-Identifier: Apache-2.0
"""`./warpbed new-algorithm NAME`: a user's own algorithm, from the templates of kernels/template."""

from __future__ import annotations

import argparse

from base.paths import ROOT
from testbed.new_algorithm import new_algorithm

HELP = "create module, specification, test and experiment of a new algorithm, or a BPF program"


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("name", help="its name: a-z, 0-9 and _, at most 15 characters")
    command.add_argument("--bpf", action="store_true", help="as a BPF program, for kernels that no module is built for")


def main(options: argparse.Namespace) -> int:
    for file in new_algorithm(options.name, ROOT, options.bpf):
        print(file.relative_to(ROOT))
    if options.bpf:
        print(f"next: a kernel with BPF (docs/hosts.md#bpf), then ./warpbed run experiments/{options.name}.yml")
        return 0
    print(
        f"next: ./warpbed run experiments/{options.name}.yml; ./warpbed test tests/kernels/test_spec_{options.name}.py; "
        f"./warpbed evaluate {options.name} --quick"
    )
    return 0
