# SPDX-License-Identifier: Apache-2.0
"""Grafana's own libraries, run by Node: what a panel makes of its query's answer in Grafana 9.4, that of images.yml and the newest."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from base.paths import cache_dir

HERE = Path(__file__).parent
VERSIONS = ("oldest", "pinned", "current")
INSTALL = ("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--legacy-peer-deps", "--loglevel=error")


def installed() -> Path:
    """The folder with the libraries that package-lock.json pins by their hashes; it skips where they cannot be had."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    lock = (HERE / "package-lock.json").read_bytes()
    final = cache_dir() / "grafana-libraries" / hashlib.sha256(lock).hexdigest()[:16]
    if final.is_dir():
        return final
    final.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=".aside-", dir=final.parent))
    try:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / name, aside)
        done = subprocess.run(INSTALL, cwd=aside, capture_output=True, text=True, check=False, timeout=600)
        if done.returncode:
            pytest.skip(f"npm cannot install Grafana's libraries: {done.stderr.strip()[-300:]}")
        if not final.is_dir():
            os.rename(aside, final)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return final


def check(folder: Path, version: str, panels: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """What check.cjs says of each panel."""
    answers: list[dict[str, Any]] = _asked("check.cjs", [str(folder), version], panels)
    return answers


def put_in(folder: Path, scenes: Sequence[dict[str, Any]]) -> list[list[str]]:
    """What scenes.cjs makes of each scene's texts."""
    answers: list[list[str]] = _asked("scenes.cjs", [str(folder)], scenes)
    return answers


@functools.cache
def _options() -> tuple[str, ...]:
    """Of Node's: some of the libraries are ES modules, which Node reads by require() from 20.19 on; before, as in Debian 12, tsx does."""
    asked = ["node", "--print", "process.features.require_module === true"]
    reads = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=60).stdout.strip() == "true"
    return () if reads else ("--require", "tsx/cjs")


def _asked(program: str, arguments: Sequence[str], content: object) -> Any:
    done = subprocess.run(
        ["node", *_options(), str(HERE / program), *arguments],
        cwd=arguments[0],
        env={**os.environ, "TSX_DISABLE_CACHE": "1"},
        input=json.dumps(content),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def frame(target: dict[str, Any], columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """A query's answer as Grafana's PostgreSQL data source gives it: of time series, a field per metric beside the time."""
    if target["format"] == "time_series":
        times = sorted({row[0] for row in rows})
        place = {time: number for number, time in enumerate(times)}
        fields: dict[str, list[Any]] = {"time": list(times)}
        for time, metric, value in rows:
            fields.setdefault(metric, [None] * len(times))[place[time]] = value
    else:
        fields = {name: [row[number] for row in rows] for number, name in enumerate(columns)}
    return {"refId": target["refId"], "fields": [_field(name, values) for name, values in fields.items()]}


def _field(name: str, values: Sequence[Any]) -> dict[str, Any]:
    first = next((value for value in values if value is not None), None)
    if isinstance(first, datetime):
        milliseconds = [None if value is None else value.timestamp() * 1000 for value in values]
        return {"name": name, "type": "time", "values": milliseconds}
    if isinstance(first, bool):
        return {"name": name, "type": "boolean", "values": list(values)}
    if first is None or isinstance(first, str):
        return {"name": name, "type": "string", "values": list(values)}
    return {"name": name, "type": "number", "values": [None if value is None else float(value) for value in values]}
