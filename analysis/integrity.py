# SPDX-License-Identifier: Apache-2.0
"""A run's files as they were when it was finished: SHA-256 of everything in raw/ and records/, kept in run.json.

They show damage and careless edits. They are no signature: who changes run.json as well can write new ones (docs/threat-model.md).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from base import small_files

KEY = "digests"
PARTS = ("raw", "records")


def digests(folder: Path, parts: Sequence[str] = PARTS) -> dict[str, str]:
    """Path within the run's folder → SHA-256 in hexadecimal. What is no plain file has the digest ""."""
    return {str(file.relative_to(folder)): digest(file) for part in parts for file in _files(folder / part)}


def problems(
    folder: Path, document: Mapping[str, Any], parts: Sequence[str] = PARTS, may_lack: Sequence[str] = ()
) -> list[str]:
    """What is not as it was when the run was finished, a sentence per file; nothing for a run from before digests were kept.

    may_lack: patterns, as of pathlib.PurePath.match, of files that may have been removed
    """
    if KEY not in document:
        return []
    kept = document[KEY]
    if not isinstance(kept, dict):
        return [f"run.json: {KEY} is {type(kept).__name__}, not an object"]
    recorded = {name: value for name, value in kept.items() if name.partition("/")[0] in parts}
    current = digests(folder, parts)
    removed = sorted(recorded.keys() - current.keys())
    return [
        *(f"{name}: has been removed" for name in removed if not any(Path(name).match(one) for one in may_lack)),
        *(f"{name}: was not there when the run was finished" for name in sorted(current.keys() - recorded.keys())),
        *(
            f"{name}: was changed"
            for name in sorted(current.keys() & recorded.keys())
            if current[name] != recorded[name]
        ),
    ]


def require_plain(folder: Path, parts: Sequence[str] = PARTS) -> None:
    """Raise OSError where something of a run is no plain file: programs that open it would follow a link, or wait for a pipe."""
    for part in parts:
        if (folder / part).is_symlink():
            small_files.require_plain(folder / part)
        for file in _files(folder / part):
            small_files.require_plain(file)


def said(folder: Path, wrong: Sequence[str], remedy: str) -> str:
    """One message about all of them, at most three by name."""
    more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
    return f"{folder}: not as it was when the run was finished: {'; '.join(wrong[:3])}{more}; {remedy}"


def _files(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        links = [name for name in folders if Path(place, name).is_symlink()]
        yield from (Path(place, name) for name in sorted([*names, *links]))


def digest(file: Path) -> str:
    """SHA-256 of a plain file in hexadecimal, "" of anything else. Raises OSError."""
    try:
        descriptor = small_files.opened(file)
    except small_files.RefusedFileError:
        return ""
    with open(descriptor, "rb", buffering=0) as data:
        return hashlib.file_digest(data, "sha256").hexdigest()
