# SPDX-License-Identifier: Apache-2.0
"""The whole build, of a kernel that is five lines long."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from kernels.build import build
from kernels.build_key import find_build
from kernels.errors import BuildError

MAKEFILE = """\
VERSION = 7
PATCHLEVEL = 2
SUBLEVEL = 1
mrproper:
\trm -f stale.o
allnoconfig:
\tcp $(KCONFIG_ALLCONFIG) .config
\tmkdir -p include/config include/generated scripts
\techo 7.2.1 >include/config/kernel.release
\ttouch include/generated/autoconf.h scripts/modpost scripts/fixdep.o
all: linux
\ttouch Module.symvers
linux: main.c
\tdate >>$(COUNTER)
\t@echo "  CC      main.o"
\t@cc -o linux main.c
modules:
\ttest -f scripts/modpost -a -f include/generated/autoconf.h -a ! -e scripts/fixdep.o
\tfor name in $(basename $(notdir $(wildcard $(M)/*.c))); do \\
\t\techo $$name >>$(COUNTER).modules; \\
\t\tcc $(KCFLAGS) -c -o $(M)/$$name.ko $(M)/$$name.c; done
"""
MODULE = """\
static const char info[] __attribute__((section(".modinfo"), used)) = "\\0srcversion=ABC";
const char *place = __FILE__;
"""
PATCH = "--- a/main.c\n+++ b/main.c\n@@ -1 +1 @@\n-int main(void) { return 1; }\n+int main(void) { return 0; }\n"


class Project:
    """A checkout, a cache and a kernel source that counts how often it is compiled."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "checkout"
        self.cache = folder / "cache"
        self.tree = folder / "linux"
        self.counter = folder / "compiled"
        for path, text in {
            self.root / "kernels/patches/series": "main.patch >=7.0\n",
            self.root / "kernels/patches/main.patch": PATCH,
            self.root / "kernels/configs/um.config": "CONFIG_A=y\n",
            self.root / "kernels/configs/um.required": "CONFIG_A=y\n",
            self.root / "kernels/modules/tcp_x.c": MODULE,
            self.root / "kernels/modules/Kbuild": "obj-m += tcp_x.o\n",
            self.tree / "Makefile": MAKEFILE.replace("$(COUNTER)", str(self.counter)),
            self.tree / "Kbuild": "",
            self.tree / "Kconfig": "",
            self.tree / "arch/um/Makefile": "",
            self.tree / "include/linux/tcp.h": "",
            self.tree / "main.c": "int main(void) { return 1; }\n",
            self.tree / "stale.o": "",
        }.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def build(self) -> tuple[Path, bool]:
        return build(str(self.tree), cache=self.cache, root=self.root)

    @property
    def compiled(self) -> int:
        return len(self.counter.read_text().splitlines()) if self.counter.exists() else 0

    def modules_compiled(self) -> list[str]:
        """Since this was asked last."""
        file = self.counter.with_name(f"{self.counter.name}.modules")
        names = sorted(file.read_text().split()) if file.exists() else []
        file.unlink(missing_ok=True)
        return names

    @property
    def half_made(self) -> list[Path]:
        return list(self.cache.rglob(".aside-*"))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_a_build_is_published_with_its_description(project: Project) -> None:
    path, changed = project.build()
    assert changed
    assert {entry.name for entry in path.iterdir()} == {"linux", "modules", "build", "config", "build.json"}
    assert os.spawnv(os.P_WAIT, path / "linux", ["linux"]) == 0, "the patch is applied"
    description = json.loads((path / "build.json").read_text())
    assert description["key"] == path.name
    assert description["kernel_release"] == "7.2.1"
    assert [patch["name"] for patch in description["patches"]] == ["main.patch"]
    assert [(module["name"], module["srcversion"]) for module in description["modules"]] == [("tcp_x", "ABC")]
    assert find_build(str(project.tree), cache=project.cache, root=project.root).exists
    assert not project.half_made


def test_the_same_inputs_build_nothing(project: Project) -> None:
    first, _ = project.build()
    assert project.build() == (first, False)
    assert project.compiled == 1


def test_the_source_is_left_as_it_was(project: Project) -> None:
    project.build()
    assert (project.tree / "stale.o").exists()
    assert not (project.tree / ".config").exists()
    assert "return 1" in (project.tree / "main.c").read_text()


def test_only_what_a_module_build_needs_is_kept(project: Project) -> None:
    path, _ = project.build()
    kept = {str(file.relative_to(path / "build")) for file in (path / "build/").rglob("*") if file.is_file()}
    assert {"Makefile", ".config", "Module.symvers", "include/linux/tcp.h", "scripts/modpost"} <= kept
    assert not {"main.c", "linux", "scripts/fixdep.o"} & kept


def test_a_changed_module_does_not_compile_the_kernel_again(project: Project) -> None:
    first, _ = project.build()
    (project.root / "kernels/modules/tcp_x.c").write_text(MODULE.replace("ABC", "DEF"))
    second, changed = project.build()
    assert changed
    assert second != first
    assert project.compiled == 1
    assert json.loads((second / "build.json").read_text())["modules"][0]["srcversion"] == "DEF"


def test_a_changed_module_is_compiled_alone_and_a_header_s_change_compiles_all(project: Project) -> None:
    folder = project.root / "kernels/modules"
    for name in ("tcp_y", "warp_z"):
        (folder / f"{name}.c").write_text(MODULE)
    project.build()
    assert project.modules_compiled() == ["tcp_x", "tcp_y", "warp_z"]
    (folder / "tcp_x.c").write_text(MODULE.replace("ABC", "DEF"))
    (folder / "tcp_y.c").unlink()
    path, _ = project.build()
    assert project.modules_compiled() == ["tcp_x"]
    built = {
        module["name"]: module["srcversion"] for module in json.loads((path / "build.json").read_text())["modules"]
    }
    assert built == {"tcp_x": "DEF", "warp_z": "ABC"}
    for name in ("cc_shared.h", "Kbuild"):
        with (folder / name).open("a") as file:
            file.write("# more\n")
        project.build()
        assert project.modules_compiled() == ["tcp_x", "warp_z"]
    (folder / "warp_z.c").unlink()
    path, changed = project.build()
    assert changed and project.modules_compiled() == []
    assert [file.name for file in (path / "modules").iterdir()] == ["tcp_x.ko"]


def test_nothing_of_the_place_gets_into_a_build(project: Project, tmp_path: Path) -> None:
    first, _ = project.build()
    (tmp_path / "elsewhere").mkdir()
    other = Project(tmp_path / "elsewhere")
    other.tree = project.tree
    second, _ = other.build()
    assert (first / "build.json").read_text() == (second / "build.json").read_text()
    for name in ("linux", "modules/tcp_x.ko"):
        assert (first / name).read_bytes() == (second / name).read_bytes()


def test_a_user_whose_environment_asks_for_other_flags_gets_the_same_build(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAKEFLAGS", "--no-such-flag")
    monkeypatch.setenv("CROSS_COMPILE", "no-such-")
    assert project.build()[1]


def test_a_compiler_error_is_shown_and_nothing_is_left(project: Project) -> None:
    (project.root / "kernels/patches/main.patch").write_text(PATCH.replace("return 0;", "return 0"))
    with pytest.raises(
        BuildError, match=r"compiling the kernel failed .*\n(.*\n)*main\.c:1:\d+: error: expected"
    ) as raised:
        project.build()
    log = Path(str(raised.value).rpartition(": ")[2])
    assert "main.c:1" in log.read_text()
    assert not project.half_made
    assert not find_build(str(project.tree), cache=project.cache, root=project.root).exists


def test_a_patch_that_does_not_apply_exactly_is_an_error(project: Project) -> None:
    (project.tree / "main.c").write_text("int main(void) { return 2; }\n")
    with pytest.raises(BuildError, match=r"applying main\.patch failed .*\n(.*\n)*Hunk #1 FAILED"):
        project.build()


def test_an_option_that_did_not_come_out_is_an_error_before_anything_is_compiled(project: Project) -> None:
    (project.root / "kernels/configs/um.required").write_text("CONFIG_A=y\nCONFIG_B=y\n")
    with pytest.raises(BuildError, match=r"um\.required:2: CONFIG_B is n, must be y"):
        project.build()
    assert project.compiled == 0


def test_a_module_that_does_not_compile_leaves_the_kernel_in_the_cache(project: Project) -> None:
    (project.root / "kernels/modules/tcp_x.c").write_text("int x\n")
    with pytest.raises(BuildError, match="compiling the modules failed"):
        project.build()
    (project.root / "kernels/modules/tcp_x.c").write_text(MODULE)
    assert project.build()[1]
    assert project.compiled == 1


def test_a_kernel_deleted_from_under_a_build_is_built_again(project: Project) -> None:
    path, _ = project.build()
    shutil.rmtree(project.cache / "kernels/base")
    assert not find_build(str(project.tree), cache=project.cache, root=project.root).exists
    assert project.build() == (path, True)
    assert (path / "build/Module.symvers").exists()
    assert os.spawnv(os.P_WAIT, path / "linux", ["linux"]) == 0
