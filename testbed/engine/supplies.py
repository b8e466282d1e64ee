# SPDX-License-Identifier: Apache-2.0
"""What workers need to make runs, and what they send home: seen by all where they share a file system, else by way of a store."""

from __future__ import annotations

import hashlib
import sys
import tarfile
from functools import cached_property
from pathlib import Path
from typing import Any

from base.errors import WarpbedError
from base.layers import RUN_PACKAGES
from base.paths import ROOT, cache_dir
from base.watcher import watched_folder
from collectors import native
from hosts.virtual import pinned
from hosts.virtual.kernel import load
from testbed.engine.store import Entry, Store
from testbed.engine.worker import Artifact
from testbed.results import Results

FILES = ("warpbed", "requirements.lock", "requirements-dask.lock")
LEFT_OUT = ("__pycache__", "target")


class Supplies:
    """Nothing is sent where store is ""."""

    def __init__(self, store: str) -> None:
        self._url = store
        self._artifacts: dict[str, tuple[Artifact, ...]] = {}

    @cached_property
    def store(self) -> Store:
        return Store(self._url)

    def artifacts(self, kernel: str) -> tuple[Artifact, ...]:
        """Kernel build, collector and user land, as places in the cache; in store mode they are sent there first, once.

        kernel: the key of the build that the run boots
        """
        if kernel not in self._artifacts:
            self._artifacts[kernel] = self._found(kernel)
        return self._artifacts[kernel]

    def _found(self, kernel: str) -> tuple[Artifact, ...]:
        load(cache_dir() / "kernels" / kernel)  # raises where it is gone
        collector = native.folder()
        wanted = [(f"kernels/{kernel}", "build.json"), (f"native/{collector.name}", native.MODULE)]
        if (root := pinned.root()) is not None:
            wanted.append((str(root.relative_to(cache_dir())), pinned.MARKER))
        return tuple(Artifact(place, marker, self._sent(place) if self._url else None) for place, marker in wanted)

    def program(self) -> dict[str, Any]:
        """Where the project's code and its environment are: as the client sees them, and in the store."""
        content: dict[str, Any] = {"root": str(ROOT), "python": sys.executable, "venv": Path(sys.prefix).name}
        return {**content, "code": self._code} if self._url else content

    def fetch(self, entry: Entry | dict[str, Any], results: Results, run_id: str) -> bool:
        """Give a run of the store its name among the results, and take it from the store; False where it is not whole."""
        one = entry if isinstance(entry, Entry) else Entry(**entry)
        with results.aside() as folder:
            try:
                self.store.get(one, folder)
            except WarpbedError:
                return False
            results.publish(folder, run_id)
        self.store.remove(one)
        return results.is_complete(run_id)

    def fetch_failed(self, entry: dict[str, Any], results: Results, run_id: str) -> None:
        """Keep what a failed run has left on its worker, logs and all."""
        one = Entry(**entry)
        with results.aside() as folder:
            try:
                self.store.get(one, folder)
            except WarpbedError:
                return
            results.publish_failed(folder, run_id)
        self.store.remove(one)

    def _sent(self, place: str) -> Entry:
        """The archive of a folder of the cache; `build`, which modules are compiled with, stays here."""
        name = f"artifacts/{place}"
        for entry in self.store.entries(name):
            return entry
        return self.store.put(cache_dir() / place, name, {"place": place}, without=("build",))

    @cached_property
    def _code(self) -> dict[str, Any]:
        """The project's code as an archive in the store, by its digest."""
        with watched_folder("warpbed-code-") as scratch:
            archive = scratch / "code.tar"
            with tarfile.open(archive, "w") as out:
                for top in (*FILES, *RUN_PACKAGES):
                    out.add(ROOT / top, arcname=top, filter=_plain)
            with archive.open("rb") as content:
                sha256 = hashlib.file_digest(content, "sha256").hexdigest()
            system, path = self.store.send(archive, f"code/{sha256}.tar")
        return {"sha256": sha256, "system": system, "path": path}


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """The same archive for the same files: without times, owners and what was compiled."""
    if Path(member.name).name in LEFT_OUT:
        return None
    member.mtime, member.uid, member.gid, member.uname, member.gname = 0, 0, 0, "", ""
    return member
