# SPDX-License-Identifier: Apache-2.0
"""Result folders: made aside, named when complete, never overwritten, never left half.

results/<experiment>/<run-id>/              a complete run
results/<experiment>/<run-id>.failed-<n>/   a run that gave no result, kept for its logs; or what lay in a run's place and was none
results/.aside/<unique>/                    a run that is being made; its maker holds a lock on .aside/<unique>.lock
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import stat
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from analysis.results import FORMAT, other_format
from base.errors import UsageError, WarpbedError
from base.files import make_folder, remove_left, sync_folder, sync_tree
from base.small_files import RefusedFileError, small_json

ASIDE = ".aside"
NAME = re.compile(r"[0-9a-f]{32}")
"""Of a folder aside: a UUID."""
PARTS = ("", ".sender", ".receiver")
"""A run's folder, and those of the files that a transfer's ends have sent."""
ATTEMPTS = 100


class Results:
    """The results of one experiment."""

    def __init__(self, base: Path, experiment: str) -> None:
        self.base, self.folder = base, base / experiment

    def path(self, run_id: str) -> Path:
        return self.folder / run_id

    def is_complete(self, run_id: str) -> bool:
        """Whether its run.json is there and whole."""
        try:
            return isinstance(small_json(self.path(run_id) / "run.json"), dict)
        except (OSError, ValueError):
            return False

    def is_begun(self, run_id: str) -> bool:
        """Whether it was done, or tried and failed."""
        return self.path(run_id).is_dir() or (self.folder / f"{run_id}.failed-1").is_dir()

    @contextlib.contextmanager
    def aside(self) -> Iterator[Path]:
        """A folder to make a run in; whatever is still in it at the end is removed."""
        root = _aside_root(self.base)
        with _locked_new(root) as name:
            folder = root / name
            folder.mkdir()
            try:
                yield folder
            finally:
                shutil.rmtree(folder, ignore_errors=True)

    def publish(self, folder: Path, run_id: str) -> Path:
        """Give a complete run its final name, once all of it is on the disk. Where another process was faster, its run stays."""
        final = self.path(run_id)
        make_folder(final.parent)
        sync_tree(folder)
        while True:
            try:
                os.rename(folder, final)
            except OSError:
                if not os.path.lexists(final):
                    raise
                if self.set_aside(run_id) is None:
                    return final
                continue
            sync_folder(final.parent)
            return final

    def set_aside(self, run_id: str) -> Path | None:
        """Rename what bears a run's name and is no complete run, so that the run can be made; where it is kept.

        None where nothing is in the way: there is nothing, or the run is complete. Raises WarpbedError where that cannot be told.
        """
        final = self.path(run_id)
        if not os.path.lexists(final):
            return None
        try:
            if isinstance(small_json(final / "run.json"), dict):
                return None
        except (FileNotFoundError, NotADirectoryError, RefusedFileError, ValueError):
            pass
        except OSError as error:
            raise WarpbedError(
                f"{final / 'run.json'}: {error.strerror}; the run may be complete: let your user read it, or move {final} away"
            ) from error
        return self._kept(final, run_id)

    def publish_failed(self, folder: Path, run_id: str) -> Path:
        """Keep what a failed run left, under a name that says so."""
        make_folder(self.folder)
        remove_left(folder, "records")  # of a collection that could not even remove its own
        sync_tree(folder)
        return self._kept(folder, run_id)

    def _kept(self, place: Path, run_id: str) -> Path:
        for number in range(1, 10_000):
            final = self.folder / f"{run_id}.failed-{number}"
            if os.path.lexists(final):
                continue
            try:
                os.rename(place, final)
            except OSError:
                if os.path.lexists(final):  # another process was faster
                    continue
                raise
            sync_folder(self.folder)
            return final
        raise WarpbedError(f"{self.folder}: {run_id} has failed 9999 times; remove its failed folders")


def read_run(file: Path) -> dict[str, Any]:
    """One run.json.

    Raises UsageError where it is not one of this version.
    """
    try:
        run = small_json(file)
    except RefusedFileError as error:
        raise UsageError(str(error)) from error
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}; a run's folder has one that your user can read") from error
    except ValueError as error:
        raise UsageError(f"{file}: not JSON ({error}); remove the folder and run the experiment again") from error
    if not isinstance(run, dict):
        raise UsageError(f"{file}: holds {type(run).__name__}, not an object; remove the folder and run again")
    if run.get("format") != FORMAT:
        raise UsageError(f"{file}: {other_format(run.get('format'))}")
    return run


def purge_aside(base: Path) -> int:
    """Remove what killed processes left aside; returns how many folders. Those in use are left alone, and so is
    everything that does not bear a name of this program's: the folder may have come from somebody else."""
    root, removed = base / ASIDE, 0
    try:
        there, entries = os.lstat(root), os.listdir(root)
    except (FileNotFoundError, NotADirectoryError):
        return 0
    if not stat.S_ISDIR(there.st_mode) or there.st_uid != os.getuid():
        return 0
    # a folder may have lost its lock: it could not be removed when its maker ended (a disk with errors), the lock could
    names = {name for name, dot, suffix in (e.partition(".") for e in entries) if dot + suffix in (".lock", *PARTS)}
    for name in sorted(names):
        lock = root / f"{name}.lock"
        if not NAME.fullmatch(name):
            continue
        try:
            held = _lock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # a link, or gone
            continue
        if held is None:
            continue
        with held:
            for folder in (root / f"{name}{part}" for part in PARTS):
                if folder.is_dir() and not folder.is_symlink():
                    shutil.rmtree(folder, ignore_errors=True)
                    removed += 1
            lock.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        root.rmdir()
    return removed


def _aside_root(base: Path) -> Path:
    """The folder for folders aside, which may not be there. Raises UsageError where a link stands in its place."""
    root = base / ASIDE
    make_folder(base)
    if root.is_symlink():
        raise UsageError(f"{root}: is a link; remove it, and look where these results came from")
    return root


@contextlib.contextmanager
def _locked_new(root: Path) -> Iterator[str]:
    """A new name below `root` whose lock file is held until the end, and then removed."""
    name = uuid.uuid4().hex
    lock = root / f"{name}.lock"
    with _first_lock(root, lock):
        try:
            yield name
        finally:
            lock.unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                root.rmdir()


def _first_lock(root: Path, lock: Path) -> IO[str]:
    """Hold a lock file that did not exist. Other processes may remove `root` while it is empty, and locks that nobody holds."""
    for _ in range(ATTEMPTS):
        with contextlib.suppress(FileExistsError):
            root.mkdir()
        with contextlib.suppress(FileNotFoundError):
            if (held := _lock(lock, fcntl.LOCK_EX)) is not None:
                return held
    raise WarpbedError(f"{root}: keeps being removed while it is created; is another program working in these results?")


def _lock(file: Path, how: int) -> IO[str] | None:
    """Hold the lock of a file until what is returned is closed; None where it is held elsewhere or was removed meanwhile."""
    held = open(os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666), "w")
    try:
        fcntl.flock(held, how)
        if os.path.samestat(os.fstat(held.fileno()), os.stat(file, follow_symlinks=False)):
            return held
    except (BlockingIOError, FileNotFoundError):
        pass
    held.close()
    return None
