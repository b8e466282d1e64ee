# SPDX-License-Identifier: Apache-2.0
"""Keep what Python compiles out of zip files, under the digest of its source.

Ansible sends each module as a zip file of source texts, which is compiled anew in each task: seconds of an emulated CPU. A
start-up file of the lab machine's Python (`kept_code.pth`) imports this; what is compiled and run is the same.
"""

from __future__ import annotations

import _imp
import marshal
import os
import sys
import zipimport
from types import CodeType

FOLDER = os.path.join(os.path.dirname(__file__), "kept_code.d")
_compile = zipimport._compile_source  # type: ignore[attr-defined]


def _kept(path: str, source: bytes) -> CodeType:
    file = f"{FOLDER}/{_imp.source_hash(sys.hexversion, source).hex()}"
    try:
        with open(file, "rb") as kept:
            code: CodeType = marshal.load(kept)  # noqa: S302 (only root can write it)
    except (OSError, EOFError, ValueError, TypeError):  # none yet, or half of one, as a crash may leave it
        code = _compile(path, source)
        fresh = f"{file}.{os.getpid()}"
        with open(fresh, "wb") as out:
            marshal.dump(code, out)
        os.rename(fresh, file)
    return code


zipimport._compile_source = _kept  # type: ignore[attr-defined]
