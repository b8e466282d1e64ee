# SPDX-License-Identifier: Apache-2.0
"""Build a kernel (User-Mode Linux, or x86-64 for virtual machines) and the project's modules from a source in the cache.

Both appear in the cache by rename. Of a kernel's 1.5 GB of sources and objects only what a module build needs stays.
Builds of x86-64 hold Debian packages too (kernels.package).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path

from base.cache import aside, remove, sha256_of
from base.errors import UsageError, WarpbedError
from base.paths import ROOT
from kernels import module_objects, package
from kernels.build_key import ARCHITECTURES, RECIPES, Inputs, arguments, base_folder, build_folder, inputs_of
from kernels.conditions import lines_for
from kernels.errors import BuildError
from kernels.source import Source
from kernels.steps import Steps, end_with_caller

# What an out-of-tree module build reads: headers, the machinery of scripts/, the Makefiles of both architectures.
KEPT_FOLDERS = ("include", "arch/um", "arch/x86", "scripts", "tools/include")
KEPT_NAMES = re.compile(r".*\.h|Makefile.*|Kbuild.*|Kconfig.*|auto\.conf|kernel\.release|.*\.lds|.*\.mk|.*\.include")
KEPT_FILES = ("Makefile", "Kbuild", "Kconfig", ".config", "Module.symvers")
KEPT_IF_THERE = ("tools/objtool/objtool",)  # checks and annotates every object of x86-64
DROPPED_SUFFIXES = (".o", ".cmd", ".a")
DROPPED_FOLDERS = {"dt-bindings", "dtc", "gdb", "coccinelle", "kconfig", "package", "selinux", "ksymoops", "tracing"}


def build(
    kernel: str,
    *,
    cache: Path,
    root: Path = ROOT,
    version: str | None = None,
    jobs: int | None = None,
    arch: str = "um",
) -> tuple[Path, bool]:
    """The folder of the build for a kernel's name, and whether it had to be made."""
    inputs = inputs_of(kernel, cache=cache, root=root, version=version, arch=arch)
    if inputs is None:
        raise WarpbedError(f"no linux-source-{kernel} package is in {cache / 'sources'}; kernels.fetch puts it there")
    final = build_folder(cache, inputs)
    base = base_folder(cache, inputs)
    log = cache / "kernels/.logs" / f"{inputs.key}.log"
    changed = False
    with aside(base, marker="linux") as place:
        if place:
            work, lock = place
            _build_base(inputs, work, Steps(log, lock), root, jobs or len(os.sched_getaffinity(0)))
            changed = True
    with aside(final, marker="build.json") as place:
        if place:
            work, lock = place
            _build_modules(inputs, work, Steps(log, lock), base, root, cache)
            changed = True
    log.unlink(missing_ok=True)
    return final, changed


def _build_base(inputs: Inputs, work: Path, steps: Steps, root: Path, jobs: int) -> None:
    """Unpack, patch, configure, compile, and keep what is needed."""
    tree = work / "tree"
    tree.mkdir()
    _unpack(inputs.source, tree, steps)
    for name in inputs.patches:
        patch = root / "kernels/patches" / name
        steps.run(
            f"applying {name}",
            "patch",
            "-p1",
            "--fuzz=0",
            "--forward",
            "--batch",
            "--no-backup-if-mismatch",
            cwd=tree,
            stdin=patch,
        )
    configs = root / "kernels/configs"
    names = ARCHITECTURES[inputs.arch]
    fragment = work / "fragment"
    fragment.write_text(_merged([configs / f"{name}.config" for name in names]))
    make = ("make", f"ARCH={inputs.make_arch}", f"-j{jobs}", "--output-sync=target", "--no-print-directory")
    steps.run("configuring the kernel", *make, "allnoconfig", cwd=tree, env={"KCONFIG_ALLCONFIG": str(fragment)})
    fragment.unlink()
    _check_config(tree / ".config", [configs / f"{name}.required" for name in names], inputs.source.series)
    if inputs.make_arch == "um":
        steps.run("compiling the kernel", *make, "all", cwd=tree)
        steps.run("stripping the kernel", "strip", "-o", work / "linux", tree / "linux", cwd=tree)
    else:
        local = package.local_version(inputs.kernel_key)
        steps.run("compiling the kernel", *make, "bzImage", "modules", cwd=tree, env={"LOCALVERSION": local})
        shutil.copy(tree / "arch/x86/boot/bzImage", work / "linux")
        package.pack_kernel(tree, work / "packages", make, local, steps)
    shutil.copy(tree / ".config", work / "config")
    _keep_for_modules(tree, work / "build")
    remove(tree)


def _unpack(source: Source, tree: Path, steps: Steps) -> None:
    """Put the source into `tree`; a user's own tree is copied and never changed."""
    untar = "tar -x --strip-components=1 --no-same-owner"
    inner = f"./usr/src/linux-source-{source.series}.tar.xz"
    script = {
        "deb": f'dpkg-deb --fsys-tarfile "$1" | tar -x -O {inner} | xz -dc -T0 | {untar}',
        "tarball": f'{untar} -f "$1"',
        "tree": 'tar -C "$1" --exclude=./.git -c . | tar -x --no-same-owner',
    }[source.kind]
    steps.run(
        f"unpacking {source.path.name}", "bash", "-euo", "pipefail", "-c", script, "unpack", source.path, cwd=tree
    )
    if source.kind != "deb":
        # Left-overs of the user's own builds, perhaps for another architecture.
        steps.run("cleaning the copied source", "make", "ARCH=um", "mrproper", cwd=tree)


def _merged(fragments: list[Path]) -> str:
    """One fragment out of several: the last file that names an option decides, since kconfig warns of options given twice."""
    options: dict[str, str] = {}
    for fragment in fragments:
        options.update(re.findall(r"^(CONFIG_\w+)=(.*)$", fragment.read_text(), re.MULTILINE))
    return "".join(f"{name}={value}\n" for name, value in options.items())


def _check_config(config: Path, required: list[Path], series: str) -> None:
    """Compare the configuration with what is required of it, since kconfig drops silently what it does not know.

    The last file that names an option decides.
    """
    have = dict(re.findall(r"^(CONFIG_\w+)=(.*)$", config.read_text(), re.MULTILINE))
    wanted = {}
    for file in required:
        for line in lines_for(file, series):
            name, _, value = line.word.partition("=")
            wanted[name] = (value, f"{file.name}:{line.number}")
    wrong = [
        f"{place}: {name} is {have.get(name, 'n')}, must be {value}"
        for name, (value, place) in wanted.items()
        if have.get(name, "n") != value
    ]
    if wrong:
        raise BuildError(f"the configuration of Linux {series} is not what was asked for:\n" + "\n".join(wrong))


def _keep_for_modules(tree: Path, kept: Path) -> None:
    """Copy what a module build needs out of the built tree."""
    for name in KEPT_FILES:
        _link(tree / name, kept / name)
    for name in KEPT_IF_THERE:
        if (tree / name).is_file():
            _link(tree / name, kept / name)
    for top in KEPT_FOLDERS:
        for folder, folders, names in os.walk(tree / top):
            folders[:] = [name for name in folders if name not in DROPPED_FOLDERS]
            here = Path(folder)
            for name in names:
                path = here / name
                machinery = top == "scripts" or "generated" in path.parts
                if KEPT_NAMES.fullmatch(name) or (machinery and not name.endswith(DROPPED_SUFFIXES)):
                    _link(path, kept / path.relative_to(tree))
            for name in folders:
                if (here / name).is_symlink():
                    _link(here / name, kept / (here / name).relative_to(tree))


def _link(source: Path, target: Path) -> None:
    """Keep a file or link without copying its content."""
    target.parent.mkdir(parents=True, exist_ok=True)
    os.link(source, target, follow_symlinks=False)


def _build_modules(inputs: Inputs, work: Path, steps: Steps, base: Path, root: Path, cache: Path) -> None:
    """Build the project's modules against the kept part of the kernel, and write build.json."""
    modules = work / "modules"
    modules.mkdir()
    tree = base / "build"
    if inputs.module_sources:
        sources = work / "sources"
        kept = module_objects.restore(inputs, cache, modules)
        for name in inputs.module_sources.keys() - kept:
            (sources / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / "kernels/modules" / name, sources / name)
        # No path of this machine gets into a module, however the cache is reached: make asks for what is behind its links.
        folders = dict.fromkeys((sources, tree, sources.resolve(), tree.resolve()))
        flags = "KCFLAGS=" + " ".join(f"-ffile-prefix-map={folder}/=" for folder in folders)
        steps.run(
            "compiling the modules",
            "make",
            "-C",
            tree,
            f"ARCH={inputs.make_arch}",
            f"M={sources}",
            flags,
            "--no-print-directory",
            "modules",
            cwd=sources,
        )
        compiled = sorted(sources.rglob("*.ko"))
        for module in compiled:
            steps.run(
                f"stripping {module.name}", "strip", "--strip-debug", "-o", modules / module.name, module, cwd=sources
            )
        module_objects.keep(inputs, cache, [modules / module.name for module in compiled])
        remove(sources)
    for name in ("linux", "config"):
        _link(base / name, work / name)
    if inputs.make_arch != "um":
        package.pack_modules(work, tree, inputs.key, steps)
        for path in (base / "packages").iterdir():
            _link(path, work / "packages" / path.name)
    (work / "build").symlink_to(Path("..") / "base" / base.name / "build")
    (work / "build.json").write_text(json.dumps(_description(inputs, work, tree), indent=2) + "\n")


def _description(inputs: Inputs, work: Path, tree: Path) -> dict[str, object]:
    """What a run records about its kernel."""
    source = inputs.source
    modules = [
        {
            "name": path.stem,
            "file": f"modules/{path.name}",
            "srcversion": _modinfo(path, "srcversion"),
            "sha256": sha256_of(path),
        }
        for path in sorted((work / "modules").glob("*.ko"))
    ]
    return {
        "format": 1,
        "arch": inputs.arch,
        "key": inputs.key,
        "kernel_key": inputs.kernel_key,
        "hash": sha256_of(work / "linux"),
        "kernel_release": package.release_of(tree),
        "series": source.series,
        "source": {
            "kind": source.kind,
            "package": source.package,
            "version": source.version,
            "file": source.path.name,
            "sha256": source.sha256,
            **({"unchecked": list(source.unchecked)} if source.unchecked else {}),
        },
        "patches": [{"name": name, "sha256": sha256} for name, sha256 in inputs.patches.items()],
        "config": {"sha256": inputs.config_sha256, "required_sha256": inputs.required_sha256},
        "compiler": inputs.compiler,
        "linker": inputs.linker,
        "recipe": RECIPES[inputs.arch],
        "module_sources": inputs.module_sources,
        "modules": modules,
        "packages": [
            {"file": f"packages/{path.name}", "sha256": sha256_of(path)} for path in sorted(work.glob("packages/*.deb"))
        ],
    }


def _modinfo(module: Path, field: str) -> str:
    """A field of a module's .modinfo section."""
    match = re.search(rb"\0" + field.encode() + rb"=([^\0]*)\0", module.read_bytes())
    return match[1].decode() if match else ""


def main(argv: list[str] | None = None) -> int:
    """Build, and print where as JSON."""
    parser = arguments("Build the kernel and the project's modules.")
    parser.add_argument("--jobs", type=int, help="compilers at once; default: as many as CPUs")
    options = parser.parse_args(argv)
    end_with_caller()
    try:
        path, changed = build(
            options.kernel, cache=options.cache, version=options.version, jobs=options.jobs, arch=options.arch
        )
    except WarpbedError as error:
        print(error, file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    print(json.dumps({"changed": changed, "path": str(path), **json.loads((path / "build.json").read_text())}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
