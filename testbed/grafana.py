# SPDX-License-Identifier: Apache-2.0
"""A Grafana that reads the store: the files that provision one of the user's own, and where it shows a run."""

from __future__ import annotations

import json
import os
import re
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from psycopg.conninfo import conninfo_to_dict
from ruamel.yaml import YAML

from analysis.errors import ResultsError
from analysis.results import parse_run
from base.errors import UsageError
from base.files import replace_text
from base.paths import ROOT
from base.small_files import small_text
from dashboards import alerts as alert_rules
from dashboards.addresses import REPORTS, ZERO_S, report, uid
from store.connect import database_url, state_dir

SOURCES = ROOT / "dashboards"
READER = "warpbed_reader"
USUAL_PUBLIC = "/usr/share/grafana/public, or public where Grafana was unpacked"
USUAL = "/etc/grafana/provisioning, or conf/provisioning where Grafana was unpacked"


def provision(
    folder: Path, *, alerts: bool = False, public: Path | None = None, results: Path | None = None
) -> list[str]:
    """Write the data source and the dashboards into a Grafana's provisioning folder; returns what to tell.

    alerts: the alert rules as well; without it those of before are taken away.
    public: Grafana's folder of that name, which gets the reports of `results`; without it no dashboard links to one.

    The data source holds the reader's password: its file is readable for the owner and the group of the folder only.
    Raises UsageError where there is no such folder, the store's address or password is not known, or a file cannot be written.
    """
    if not folder.is_dir():
        raise UsageError(f"--to {folder}: no such folder; it is Grafana's own for provisioning: {USUAL}")
    if public is not None and not (public / "img").is_dir():
        raise UsageError(f"--public {public}: not Grafana's folder of that name: {USUAL_PUBLIC}")
    folder = folder.resolve()
    settings = conninfo_to_dict(database_url())
    host, port = str(settings.get("host") or "127.0.0.1"), str(settings.get("port") or 5432)
    name = str(settings.get("dbname") or "warpbed")
    user = str(settings.get("user") or READER)
    source, provider = (_content(kind) for kind in ("datasources", "dashboards"))
    (entry,) = source["datasources"]
    entry.update(url=host if host.startswith("/") else f"{host}:{port}", user=user, database=name)
    entry["jsonData"]["database"] = name
    entry["secureJsonData"]["password"] = password(host, port, name, user)
    boards = folder / "warpbed"
    provider["providers"][0]["options"]["path"] = str(boards)
    try:
        for file in (boards, folder / "datasources", folder / "dashboards"):
            file.mkdir(exist_ok=True)
        for board in sorted((SOURCES / "json").glob("*.json")):
            replace_text(boards / board.name, board.read_text() if public else _without_reports(board))
        replace_text(folder / "dashboards/warpbed.yml", _text(provider))
        rules = folder / "alerting/warpbed.yml"
        if alerts:
            rules.parent.mkdir(exist_ok=True)
            replace_text(rules, _text(alert_rules.content()))
        elif rules.exists():
            replace_text(rules, _text(alert_rules.removal()))
        _write_secret(folder / "datasources/warpbed.yml", _text(source), folder)
        reports = 0 if public is None or results is None else publish(results, public)
    except OSError as error:
        raise UsageError(
            f"{error.filename or folder}: {error.strerror}; {folder} has to be writable for you"
        ) from error
    lines = [] if public is None else [f"{public.parent / REPORTS}: {reports} reports"]
    return [
        *lines,
        f"{folder}: {len(list(boards.glob('*.json')))} dashboards, and the data source {entry['url']}/{name} as {user}",
        "restart Grafana (systemctl restart grafana-server); the dashboards are in its folder Warpbed",
    ]


def publish(results: Path, public: Path) -> int:
    """Copy each experiment's report to where Grafana serves it; how many there are."""
    reports = sorted(results.glob("*/report.html"))
    for file in reports:
        target = public.parent / REPORTS / file.parent.name / file.name
        target.parent.mkdir(parents=True, exist_ok=True)
        for place in (target.parent.parent, target.parent):
            place.chmod(0o755)
        replace_text(target, file.read_text(encoding="utf-8"), 0o644)
    return len(reports)


def _without_reports(board: Path) -> str:
    content = json.loads(board.read_text(encoding="utf-8"))
    content["links"] = [link for link in content["links"] if link["url"] != report()]
    return json.dumps(content, indent=1) + "\n"


def _content(kind: str) -> dict[str, Any]:
    content: dict[str, Any] = YAML(typ="safe").load(SOURCES / f"provisioning/{kind}/warpbed.yml")
    return content


def _text(content: dict[str, Any]) -> str:
    """JSON, which is YAML; a dollar is written twice, since Grafana puts its environment in for names after one."""
    return json.dumps(content, indent=1).replace("$", "$$") + "\n"


def _write_secret(target: Path, text: str, folder: Path) -> None:
    """A file that the folder's owner and group can read, and nobody else at any moment."""
    replace_text(target, text, 0o600)
    if os.geteuid() == 0:
        owner = folder.stat()
        os.chown(target, owner.st_uid, owner.st_gid)
    target.chmod(0o640)


def password(host: str, port: str, database: str, user: str) -> str:
    """A role's password from PGPASSFILE, or from the file that `dashboards up` has left. Raises UsageError where it has none."""
    file = Path(os.environ.get("PGPASSFILE") or state_dir() / "pgpass")
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: {error}; PGPASSFILE names the file with the store's passwords") from error
    for line in lines:
        if line.startswith("#"):
            continue
        fields = [re.sub(r"\\(.)", r"\1", part) for part in re.findall(r"((?:\\.|[^:\\])*)(?::|$)", line)[:5]]
        if len(fields) == 5 and _matches(fields[:4], (host, port, database, user)):
            return fields[4]
    raise UsageError(f"{file} has no password for {user} at {host}:{port}; ./warpbed store init makes the roles")


def _matches(fields: list[str], wanted: tuple[str, ...]) -> bool:
    return all(field in ("*", value) for field, value in zip(fields, wanted, strict=True))


def address(run: Path, url: str | None = None) -> str:
    """Where Grafana shows a run, from its start to its end. Raises UsageError."""
    try:
        text = small_text(run / "run.json")
        parsed = parse_run(text, run)
    except (OSError, UnicodeDecodeError, ResultsError) as error:
        raise UsageError(f"{run}: not a run's folder ({error}); write results/EXPERIMENT/RUN") from error
    length_s = parsed.timing.get("virtual_s") or parsed.timing.get("duration_s") or 60.0
    query = {
        "var-experiment": parsed.experiment,
        "var-run": parsed.run,
        "from": ZERO_S * 1000,
        "to": round((ZERO_S + float(length_s)) * 1000),
    }
    return f"{(url or _own()).rstrip('/')}/d/{uid('run')}?{urllib.parse.urlencode(query, quote_via=urllib.parse.quote)}"


def _own() -> str:
    """The address of this machine's Grafana, as `dashboards up` has started it."""
    try:
        settings = dict(_settings((state_dir() / ".env").read_text()))
    except OSError as error:
        raise UsageError(
            "no Grafana of `./warpbed dashboards up` is known here; start it, or name one: --url http://HOST:PORT"
        ) from error
    return f"http://127.0.0.1:{settings.get('WARPBED_GRAFANA_PORT', '3000')}"


def _settings(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        name, separator, value = line.partition("=")
        if separator:
            yield name, value
