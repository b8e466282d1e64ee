# SPDX-License-Identifier: Apache-2.0
"""Write dashboards/json/*.json from the files beside this one.

python -m dashboards.build            write them
python -m dashboards.build --check    fail where one is out of date
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from dashboards.addresses import TITLES
from dashboards.parts import BUT_IN, SCHEMA_VERSION

FOLDER = Path(__file__).parent / "json"


def build(name: str) -> dict[str, Any]:
    """A dashboard as Grafana's JSON, with steady panel ids."""
    dashboard = importlib.import_module(f"dashboards.{name}").dashboard().build()
    content: dict[str, Any] = json.loads(json.dumps(dashboard, cls=JSONEncoder))
    content["schemaVersion"] = SCHEMA_VERSION
    content.pop("id", None)
    for number, panel in enumerate(content["panels"], start=1):
        panel["id"] = number
    for mark in content["annotations"].get("list") or ():
        if titles := mark.pop(BUT_IN):
            ids = [panel["id"] for panel in content["panels"] if panel["title"] in titles]
            mark["filter"] = {"exclude": True, "ids": ids}
    return content


def text(name: str) -> str:
    return json.dumps(build(name), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def main() -> int:
    """Returns 1 where --check finds one that differs."""
    stale = []
    for name in TITLES:
        file, content = FOLDER / f"{name}.json", text(name)
        if "--check" in sys.argv[1:]:
            stale += [] if file.exists() and file.read_text() == content else [file.name]
        else:
            FOLDER.mkdir(exist_ok=True)
            file.write_text(content)
    if stale:
        print(f"out of date: {', '.join(stale)}; python -m dashboards.build writes them", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
