# SPDX-License-Identifier: Apache-2.0
"""The key of a kernel build: equal inputs, equal key, so the build is found by computing it again.

Two layers, so that editing a module does not build the kernel again: the kernel key covers the source, the patches
that apply, the configuration, the compiler and the recipe; the build key adds the sources of the modules.

    python -m kernels.build_key --series 7.2 [--arch x86]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from base.cache import digest, sha256_of
from base.errors import UsageError, WarpbedError
from base.paths import ROOT, cache_dir
from kernels.conditions import lines_for
from kernels.source import Source, locate

# Counts up with each change of kernels/build.py (x86: kernels/package.py too) that changes what comes out of it.
RECIPES = {"um": 1, "um-sanitize": 1, "x86": 3}
MODULE_SUFFIXES = {".c", ".h", ".S"}
MODULE_NAMES = {"Kbuild", "Makefile"}
# um: the virtual host's User-Mode Linux; um-sanitize: the same with KASAN, kmemleak, UBSAN and lockdep; x86: x86-64 for
# virtual machines. Later files override earlier ones.
ARCHITECTURES = {"um": ("um",), "um-sanitize": ("um", "sanitize"), "x86": ("um", "x86")}


@dataclass(frozen=True)
class Inputs:
    """All that a build depends on."""

    source: Source
    patches: dict[str, str]  # file name → SHA-256, in the order of application
    config_sha256: str
    required_sha256: str
    compiler: str
    linker: str
    module_sources: dict[str, str]  # path below kernels/modules → SHA-256
    arch: str = "um"

    @property
    def make_arch(self) -> str:
        """The architecture as the kernel's Makefile names it."""
        return self.arch.partition("-")[0]

    @property
    def kernel_key(self) -> str:
        """What the kernel depends on."""
        return digest(
            [
                RECIPES[self.arch],
                self.source.sha256,
                list(self.patches.items()),
                self.config_sha256,
                self.required_sha256,
                self.compiler,
                self.linker,
                *([] if self.arch == "um" else [self.arch]),
            ]
        )[:20]

    @property
    def key(self) -> str:
        """What kernel and modules together depend on."""
        return digest([self.kernel_key, self.module_sources])[:20]


@dataclass(frozen=True)
class BuildKey:
    """Where a build is, or will be. Without a source in the cache nothing can be said.

    kernel_exists: only the modules have to be built
    """

    key: str | None
    kernel_key: str | None
    path: str | None
    exists: bool
    kernel_exists: bool = False


def inputs_of(
    kernel: str, *, cache: Path, root: Path = ROOT, version: str | None = None, arch: str = "um"
) -> Inputs | None:
    """The inputs of a build for a kernel's name; None if its source package is not in the cache."""
    source = locate(kernel, cache, version=version)
    if source is None:
        return None
    folder = root / "kernels"
    configs = folder / "configs"
    try:
        return Inputs(
            source=source,
            patches={name: sha256_of(folder / "patches" / name) for name in patches_for(source.series, root)},
            config_sha256=_hash_of([configs / f"{name}.config" for name in ARCHITECTURES[arch]]),
            required_sha256=_hash_of([configs / f"{name}.required" for name in ARCHITECTURES[arch]]),
            compiler=_first_line("gcc"),
            linker=_first_line("ld"),
            module_sources=module_sources(folder / "modules"),
            arch=arch,
        )
    except FileNotFoundError as error:
        raise UsageError(f"{error.filename}: missing, and the kernel build needs it") from error


def _hash_of(files: list[Path]) -> str:
    hashes = [sha256_of(file) for file in files]
    return hashes[0] if len(hashes) == 1 else digest(hashes)


def find_build(
    kernel: str, *, cache: Path | None = None, root: Path = ROOT, version: str | None = None, arch: str = "um"
) -> BuildKey:
    """The current build for a kernel's name, whether it exists or not."""
    cache = cache or cache_dir()
    inputs = inputs_of(kernel, cache=cache, root=root, version=version, arch=arch)
    if inputs is None:
        return BuildKey(None, None, None, exists=False)
    path = build_folder(cache, inputs)
    return BuildKey(
        inputs.key,
        inputs.kernel_key,
        str(path),
        exists=(path / "build.json").is_file() and (path / "build").is_dir(),
        kernel_exists=(base_folder(cache, inputs) / "linux").is_file(),
    )


def build_folder(cache: Path, inputs: Inputs) -> Path:
    """Where the build with these inputs is published."""
    return cache / "kernels" / inputs.key


def base_folder(cache: Path, inputs: Inputs) -> Path:
    """Where the kernel without the project's modules is published."""
    return cache / "kernels" / "base" / inputs.kernel_key


def patches_for(series: str, root: Path = ROOT) -> list[str]:
    """The patches that apply to a series, in order."""
    return [line.word for line in lines_for(root / "kernels/patches/series", series)]


def module_sources(folder: Path) -> dict[str, str]:
    """The hash of each file that the modules are made of; build products lying beside them do not count."""
    files = sorted(path for path in folder.rglob("*") if path.suffix in MODULE_SUFFIXES or path.name in MODULE_NAMES)
    return {str(path.relative_to(folder)): sha256_of(path) for path in files if not path.name.endswith(".mod.c")}


def _first_line(program: str) -> str:
    try:
        completed = subprocess.run(
            [program, "--version"],
            check=True,
            capture_output=True,
            text=True,
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
        )
    except FileNotFoundError:
        return f"no {program}"
    return completed.stdout.partition("\n")[0]


def arguments(description: str) -> argparse.ArgumentParser:
    """The options that name a kernel, for each program of this folder."""
    parser = argparse.ArgumentParser(description=description)
    name = parser.add_mutually_exclusive_group(required=True)
    name.add_argument("--series", dest="kernel", help="series of a Debian source package, such as 7.2")
    name.add_argument("--source", dest="kernel", help="a kernel source tree or tarball")
    parser.add_argument("--version", help="exact version of the Debian package")
    parser.add_argument("--arch", choices=sorted(ARCHITECTURES), default="um", help="default: %(default)s")
    parser.add_argument("--cache", type=Path, default=cache_dir(), help="default: %(default)s")
    return parser


def main(argv: list[str] | None = None) -> int:
    """Print the key as JSON."""
    options = arguments("Print the key of a kernel build.").parse_args(argv)
    try:
        print(
            json.dumps(
                asdict(find_build(options.kernel, cache=options.cache, version=options.version, arch=options.arch))
            )
        )
    except WarpbedError as error:
        print(error, file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
