# SPDX-License-Identifier: Apache-2.0
"""Make a folder hold the files that standard input gives, and no others; print what that changed.

Arguments: folder [--check]. Standard input: JSON, name of a file → its text. --check changes nothing.
"""

import json
import os
import pathlib
import sys

folder, check = pathlib.Path(sys.argv[1]), sys.argv[2:] == ["--check"]
wanted = json.load(sys.stdin)
if bad := [name for name in wanted if name != os.path.basename(name) or name in ("", ".", "..")]:
    sys.exit(f"not the name of a file: {bad[0]!r}")
there = {path.name: path for path in folder.iterdir() if not path.is_dir()} if folder.is_dir() else {}
changed = []
for name, text in sorted(wanted.items()):
    path = folder / name
    if name in there and path.is_file() and not path.is_symlink() and path.read_bytes() == text.encode():
        continue
    changed.append(name)
    if not check:
        folder.mkdir(mode=0o755, exist_ok=True)
        fresh = folder / f".{name}.new"
        fresh.write_bytes(text.encode())
        fresh.chmod(0o644)
        fresh.rename(path)
for name in sorted(there.keys() - wanted.keys()):
    changed.append(name)
    if not check:
        there[name].unlink()
print(json.dumps({"changed": changed}))
