# SPDX-License-Identifier: Apache-2.0
"""Pack what runs on the hosts of a campaign into one file that the distribution's Python executes.

    python3 -P -m testbed.campaign.pack

Prints {"path", "digest"}. The same sources give the same bytes.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from pathlib import Path

from base.cache import used
from base.paths import ROOT, cache_dir, sent_files

MAIN = "import sys\nfrom agent.endpoint import main\nsys.exit(main())\n"
LONG_AGO = (1980, 1, 1, 0, 0, 0)


def pack() -> tuple[Path, str]:
    """The file in the cache, and the digest that is part of its name."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in [*((str(file), (ROOT / file).read_text()) for file in sent_files()), ("__main__.py", MAIN)]:
            info = zipfile.ZipInfo(name, LONG_AGO)
            info.external_attr = 0o600 << 16
            archive.writestr(info, text)
    digest = hashlib.sha256(content.getvalue()).hexdigest()[:16]
    path = cache_dir() / "agents" / f"agent-{digest}.pyz"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(f".{os.getpid()}")
        fresh.write_bytes(content.getvalue())
        os.replace(fresh, path)
    return used(path), digest


if __name__ == "__main__":
    path, digest = pack()
    print(json.dumps({"path": str(path), "digest": digest}))
