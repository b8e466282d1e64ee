# SPDX-License-Identifier: Apache-2.0
"""A module that is compiled alone has the bytes that it has beside all others, so that builds may take it from one another."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from base.cache import sha256_of
from base.paths import cache_dir
from hosts.virtual.launch import GuestKernel
from kernels import series
from kernels.build import build
from tests.checkout import copied

CHOSEN = ("tcp_astart_bwe", "tcp_lbc", "um_tap", "warp_rxbatch")
"""With parts that several modules share, with one that names a header of the kernel's (a WARN_ON), for User-Mode Linux alone, and of
several objects."""
pytestmark = pytest.mark.guest


def test_a_module_compiled_alone_is_the_same_file(kernel: GuestKernel, tmp_path: Path) -> None:
    whole = kernel.linux.parent
    facts = json.loads((whole / "build.json").read_text())
    digests = {module["name"]: module["sha256"] for module in facts["modules"]}
    # a cache with the kernel but none of the modules
    cache, real = tmp_path / "cache", cache_dir()
    base = cache / "kernels/base" / facts["kernel_key"]
    base.mkdir(parents=True)
    for name in ("linux", "config"):
        (base / name).write_bytes((real / "kernels/base" / facts["kernel_key"] / name).read_bytes())
    (base / "build").symlink_to(real / "kernels/base" / facts["kernel_key"] / "build")
    (cache / "sources").symlink_to(real / "sources")
    root = copied(tmp_path / "checkout", modules=True)
    sources = {path: path.read_text() for path in (root / "kernels/modules").glob("*.c")}
    modules = [path for path in sources if path.name.startswith(("tcp_", "um_", "warp_"))]
    for name in CHOSEN:
        for path in modules:
            path.unlink(missing_ok=True)
        alone = root / f"kernels/modules/{name}.c"
        alone.write_text(sources[alone])
        path, _ = build(series.DEFAULT, cache=cache, root=root)
        assert os.listdir(path / "modules") == [f"{name}.ko"]
        assert sha256_of(path / f"modules/{name}.ko") == digests[name]
