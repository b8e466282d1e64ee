# SPDX-License-Identifier: Apache-2.0
"""A user's own algorithm, from the templates of kernels/template: `./warpbed new-algorithm NAME`.

Module, specification, test and comparison experiment work as they are made: Reno with a choice of increase and
decrease, to be rewritten. With --bpf it is a BPF program and an experiment, for kernels that no module is built for.
"""

from __future__ import annotations

import keyword
import re
from pathlib import Path

from base.errors import UsageError, WarpbedError
from schema.names import IN_TREE_CCAS

NAME = re.compile(r"[a-z][a-z0-9_]{0,14}")
"""What TCP_CONGESTION takes (TCP_CA_NAME_MAX is 16 with the closing zero) and Python and C take as an identifier."""
C_KEYWORD = re.compile(
    "auto|break|case|char|const|continue|default|do|double|else|enum|extern|float|for|goto|if|inline|int|long|register|"
    "restrict|return|short|signed|sizeof|static|struct|switch|typedef|union|unsigned|void|volatile|while|asm|typeof|bool|"
    "true|false"
)
OF_THE_KERNEL = frozenset(
    {"tcp", "inet", "sock", "sk", "cc", "param", "module", "diag", "metrics", "probe", "bpf", "tso"}
)
"""Prefixes or modules that the kernel or this project's headers use already."""


MODULES_HINT = "     # parameters: cca: {name: @NAME@, params: {increase: 2}}"
BPF_HOST = "host: vm            # with a kernel that has BPF: docs/hosts.md#bpf"


def targets(name: str, bpf: bool = False) -> dict[str, str]:
    """Template below kernels/template → the file that it becomes, below the checkout. bpf: of a BPF program instead of a module"""
    if bpf:
        return {"algorithm.bpf.c.in": f"kernels/bpf/{name}.bpf.c", "experiment.yml.in": f"experiments/{name}.yml"}
    return {
        "module.c.in": f"kernels/modules/tcp_{name}.c",
        "spec.py.in": f"kernels/reference/{name}.py",
        "test.py.in": f"tests/kernels/test_spec_{name}.py",
        "experiment.yml.in": f"experiments/{name}.yml",
    }


def check_name(name: str, root: Path) -> None:
    """Raise UsageError, with what is allowed, for a name that cannot become an algorithm's."""
    if not NAME.fullmatch(name):
        raise UsageError(
            f"algorithm {name!r}: a name has 1 to 15 of a-z, 0-9 and _, and begins with a letter (it becomes the kernel's)"
        )
    if name in IN_TREE_CCAS:
        raise UsageError(f"algorithm {name!r}: the kernel has one of this name; choose another, e.g. my_{name[:12]}")
    if C_KEYWORD.fullmatch(name) or keyword.iskeyword(name) or name in OF_THE_KERNEL:
        raise UsageError(f"algorithm {name!r}: the word is taken in C, in Python or in the kernel; choose another")
    existing = [file for file in {**targets(name, True), **targets(name)}.values() if (root / file).exists()]
    if existing:
        raise UsageError(f"algorithm {name!r}: {', '.join(existing)} exists; choose another name, nothing was written")


def fill(text: str, name: str) -> str:
    """A template with its names filled in."""
    python_class = "".join(part.capitalize() for part in name.split("_"))
    return text.replace("@NAME@", name).replace("@CLASS@", python_class)


def new_algorithm(name: str, root: Path, bpf: bool = False) -> list[Path]:
    """Write the files below `root`; returns them. All or none are there afterwards."""
    check_name(name, root)
    written: list[Path] = []
    try:
        for template, target in targets(name, bpf).items():
            text = (root / "kernels/template" / template).read_text()
            if bpf and target.endswith(".yml"):
                text = text.replace(MODULES_HINT, "").replace("duration:", f"{BPF_HOST}\nduration:", 1)
            text = fill(text, name)
            file = root / target
            with file.open("x") as out:
                written.append(file)
                out.write(text)
    except OSError as error:
        for file in written:
            file.unlink(missing_ok=True)
        raise WarpbedError(f"{error.filename}: {error.strerror}; nothing was kept of algorithm {name!r}") from error
    return written
