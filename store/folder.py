# SPDX-License-Identifier: Apache-2.0
"""A run's folder as rows of the store: the contents of run.json, and the paths of its records."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from analysis import campaign_clock, integrity
from analysis.errors import RecordsError, ResultsError
from analysis.metrics.registry import REGISTRY
from analysis.records import require_readable
from analysis.results import FAILED, Run, parse_run, quantity, show
from base.small_files import parsed, require_plain, small_json, small_text
from base.text import clean
from collectors import reading, records
from collectors.version import READ_VERSIONS
from store import derive
from store.errors import StoreUsageError

LONGEST_S = 1e9
LATEST_S = 2**33
"""Since 1970: in the year 2242."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
OF_A_FLOW = "flow_goodput_mbps"
"""Mean goodput of the run's flows, each over its own life; added to the run's metrics when it is stored."""


# Columns without which a record says nothing; others may be missing, as in files of a collector that did not know them yet.
REQUIRED = {
    "flows": "flow src dst", "intervals": "time_ns t_s flow width_s wire_bytes delivered_bytes",
    "acks": "time_ns t_s flow ack rtt_us",
    "sockets": "time_ns t_s flow cwnd_packets ssthresh_packets", "tcp_info": "time_ns t_s flow ca_state cwnd_packets",
    "queues": "time_ns t_s node interface backlog_packets drops",
}  # fmt: skip


@dataclass(frozen=True)
class RunRow:
    """A row of `runs` without its number."""

    experiment: str
    run: str
    status: str
    error: str
    host: str
    kernel: str
    build: str
    cca: str
    seed: int | None
    verdict: str
    reasons: str
    label: str
    title: str
    question: str
    params: str
    metrics: str
    spec: str
    environment: str
    started_at: datetime
    ended_at: datetime
    clock_at: datetime | None
    made_at: datetime | None
    duration_s: float
    wall_s: float | None
    finest_ms: int
    digest: str


@dataclass(frozen=True)
class RunFolder:
    """All that goes into the store of one run. `records`: kind → file, of those that are there."""

    path: Path
    row: RunRow
    run: Run
    records: Mapping[str, Path]
    planned: tuple[tuple[int, float, str, str], ...]  # time_ns, t_s, kind, text

    @property
    def widths(self) -> tuple[int, ...]:
        return derive.widths(self.row.duration_s)

    def params(self) -> Iterator[tuple[str, str, float | None]]:
        """(name, value, number)"""
        for name, value in self.run.params.items():
            yield _clean(name), _clean(show(value)), _clean(quantity(value))

    def metrics(self) -> Iterator[tuple[str, str, float]]:
        """(name, unit, value) of every number among the metrics; parts are NAME.PART, those of flows flows.FLOW.FIELD."""
        for name, value in self.run.metrics.items():
            unit = REGISTRY[name].unit if name in REGISTRY else ""
            if isinstance(value, Mapping):
                parts = [(f"{name}.{part}", number) for part, number in value.items()]
            elif isinstance(value, list):
                parts = [
                    (f"{name}.{row.get('flow')}.{field}", number)
                    for row in value
                    if isinstance(row, Mapping)
                    for field, number in row.items()
                ]
            else:
                parts = [(name, value)]
            for part, number in parts:
                if isinstance(number, int | float) and not isinstance(number, bool) and math.isfinite(number):
                    yield _clean(part), unit or _unit(part), float(number)
        goodputs = [row.get("goodput_mbps") for row in self.run.metrics.get("flows") or () if isinstance(row, Mapping)]
        known = [float(value) for value in goodputs if isinstance(value, int | float) and math.isfinite(value)]
        if known:  # goodput_mbps is over the run's time, in which a transfer may long be over
            yield OF_A_FLOW, "Mbit/s", math.fsum(known) / len(known)


def find(path: Path) -> list[Path]:
    """The run folders below a path: a run's, an experiment's, or a whole results folder. Failed attempts count too.

    Raises StoreUsageError where there is none.
    """
    if os.path.lexists(path / "run.json"):
        return [path]
    folders = sorted(_runs_below(path, levels=2))
    if not folders:
        raise StoreUsageError(f"{path}: no run.json here or up to two folders below; ./warpbed run makes results")
    return folders


def _runs_below(path: Path, levels: int) -> Iterator[Path]:
    """Another command may make and remove folders here meanwhile (not Path.glob, which fails where one goes while it looks)."""
    try:
        names = os.listdir(path)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise StoreUsageError(
            f"{path}: {error.strerror}; let your user read it, or name the folders that are to be loaded"
        ) from error
    for name in names:
        if name.startswith("."):
            continue
        if os.path.lexists(path / name / "run.json"):  # whatever it is: `read` tells of one that it refuses
            yield path / name
        if levels > 1:
            yield from _runs_below(path / name, levels - 1)


def read(path: Path) -> RunFolder:
    """Raises StoreUsageError where run.json, a record or the plan cannot be read, with the command that makes it again."""
    try:
        return _read(path)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, pa.ArrowException, OSError) as error:
        raise StoreUsageError(
            f"{path}: it holds what no run writes ({clean(f'{type(error).__name__}: {error}')}); was it changed? "
            f"./warpbed collect {path} makes its records again"
        ) from error


def _read(path: Path) -> RunFolder:
    try:
        text = small_text(path / "run.json")
        run = parse_run(text, path)
    except UnicodeDecodeError as error:
        raise StoreUsageError(
            f"{path / 'run.json'}: {error}; remove the folder and run the experiment again"
        ) from error
    except (OSError, ResultsError) as error:
        raise StoreUsageError(str(error)) from error
    document = parsed(text)
    try:
        wrong = integrity.problems(path, document)
    except OSError as error:
        raise StoreUsageError(f"{path}: {error}") from error
    if wrong:
        remedy = f"put it back, or ./warpbed collect {path} makes the records again"
        raise StoreUsageError(integrity.said(path, wrong, remedy))
    named = {kind: path / "records" / f"{kind}.parquet" for kind in records.SCHEMAS}
    files = {kind: file for kind, file in named.items() if os.path.lexists(file)}
    digest = hashlib.sha256(text.encode())
    for kind, file in sorted(files.items()):
        _check(kind, file)
        digest.update(kind.encode() + bytes.fromhex(integrity.digest(file)))
    start_ns, duration_s = _span(document, files)
    if (clock_s := campaign_clock.read(path.absolute().parent).get(run.run)) is not None:
        digest.update(f"clock {clock_s}".encode())
    row = _row(run, path, start_ns, duration_s, clock_s, digest.hexdigest())
    return RunFolder(path, row, run, files, tuple(_planned(path, start_ns)))


def require_whole(folder: RunFolder) -> RunFolder:
    """The same; raises StoreUsageError where some row of a record cannot be read."""
    for file in folder.records.values():
        try:
            require_readable(file)
        except RecordsError as error:
            raise StoreUsageError(str(error)) from error
    return folder


def _check(kind: str, file: Path) -> None:
    again = f"./warpbed collect {file.parents[1]} makes it again"
    try:
        require_plain(file)
        schema = pq.read_schema(file)
    except (pa.ArrowException, OSError) as error:
        raise StoreUsageError(f"{file}: not a readable Parquet file ({error}); {again}") from error
    version = (schema.metadata or {}).get(b"warpbed.schema", b"").decode(errors="replace")
    if version not in map(str, READ_VERSIONS):
        known = " and ".join(map(str, READ_VERSIONS))
        raise StoreUsageError(f"{file}: records of schema {version!r}, this Warpbed reads {known}; {again}")
    try:
        names = reading.names(schema)
    except ValueError as error:
        raise StoreUsageError(f"{file}: the run's start in its metadata: {error}; {again}") from error
    for name, wanted in records.SCHEMAS[kind]:
        if name not in names:
            if name in REQUIRED.get(kind, "time_ns t_s").split():
                raise StoreUsageError(f"{file}: column {name} is missing; {again}")
        elif name in schema.names and not _fits(schema.field(name).type, wanted):
            raise StoreUsageError(f"{file}: column {name} is {schema.field(name).type}, it has to be {wanted}; {again}")


def _fits(seen: Any, wanted: Any) -> bool:
    """Whether a column of one type can be read as the other: equal, or whole numbers of another width."""
    return bool(
        seen == wanted or (pa.types.is_integer(seen) and (pa.types.is_integer(wanted) or pa.types.is_floating(wanted)))
    )


def _span(document: Mapping[str, Any], files: Mapping[str, Path]) -> tuple[int, float]:
    """Start (ns since 1970) and length (s) of a run, from its clock or else from its records."""
    timing = _mapping(document.get("timing"))
    duration_s = _seconds(timing.get("virtual_s")) or _seconds(timing.get("duration_s"))
    start = _mapping(document.get("facts")).get("start_realtime_ns")
    if not isinstance(start, int) or not 0 <= start < 1 << 63:
        start = None
    for kind, file in files.items():
        if not any(name == "t_s" for name, _ in records.SCHEMAS[kind]):
            continue
        parquet = pq.ParquetFile(file)
        if parquet.metadata.num_rows and start is None:
            first = next(reading.batches(parquet, 1, ["time_ns", "t_s"])).to_pylist()[0]
            start = round(first["time_ns"] - first["t_s"] * 1e9)
        if not duration_s:
            last = (
                parquet.metadata.row_group(parquet.metadata.num_row_groups - 1)
                if parquet.metadata.num_row_groups
                else None
            )
            origin_ns = reading.start_ns(parquet.schema_arrow)
            column = reading.SECONDS if origin_ns is None else reading.TIME
            statistics = last.column(parquet.schema_arrow.names.index(column)).statistics if last else None
            if statistics is not None:
                latest = statistics.max
                duration_s = max(duration_s, float(latest) if origin_ns is None else (latest - origin_ns) / 1e9)
    if not duration_s < LONGEST_S:
        raise ValueError(f"records of {duration_s:g} s")
    return int(start or 0), duration_s


def _environment(run: Run) -> dict[str, Any]:
    """A run's environment, and by what it is told from one of the same id that another machine made."""
    extras = {"packets": run.packets, "userland": run.inputs.get("userland"), "agent": run.inputs.get("agent")}
    return {**run.environment, **{name: value for name, value in extras.items() if value}}


def _seconds(value: Any, most_s: float = LONGEST_S) -> float:
    """0 for what is no time that a run can take, or no date."""
    return float(value) if isinstance(value, int | float) and 0 <= value < most_s else 0.0


def _mapping(value: Any) -> Mapping[str, Any]:
    """Empty for what is none: whatever somebody wrote there."""
    return value if isinstance(value, Mapping) else {}


def _row(run: Run, path: Path, start_ns: int, duration_s: float, clock_s: float | None, digest: str) -> RunRow:
    kernel, build = (_mapping(run.environment.get(name)) for name in ("kernel", "build"))
    started = EPOCH + timedelta(microseconds=start_ns // 1000)
    ended_s = _seconds(run.timing.get("ended"), LATEST_S)
    parameters = [f"{name} {show(value)}" for name, value in run.params.items()]
    seed = run.seed if isinstance(run.seed, int) and abs(run.seed) < 2**63 else None
    row = RunRow(
        experiment=run.experiment, run=_name(path, run), status=run.status, error=run.error,
        host=run.host, kernel=str(kernel.get("release") or ""), build=str(build.get("key") or kernel.get("key") or ""),
        cca=", ".join(_algorithms(run)), seed=seed, verdict=run.verdict,
        reasons="; ".join(f"{reason.rule}: {reason.message}" for reason in run.reasons),
        label=", ".join([*parameters, f"seed {run.seed}"]), title=str(run.spec.get("title") or ""),
        question=str(run.spec.get("question") or ""), params=_json(run.params), metrics=_json(run.metrics),
        spec=_json(run.spec), environment=_json(_environment(run)), started_at=started,
        ended_at=started + timedelta(seconds=duration_s),
        clock_at=None if clock_s is None else _midnight(started) + timedelta(seconds=clock_s),
        made_at=datetime.fromtimestamp(ended_s, UTC) if ended_s else None, duration_s=duration_s,
        wall_s=run.timing.get("wall_s"), finest_ms=derive.widths(duration_s)[0], digest=digest,
    )  # fmt: skip
    texts = {field.name: _clean(value) for field in fields(row) if isinstance(value := getattr(row, field.name), str)}
    return replace(row, **texts)


def _midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def _name(path: Path, run: Run) -> str:
    name = Path(os.path.abspath(path)).name
    return name if FAILED in name else run.run


def _algorithms(run: Run) -> list[str]:
    names: dict[str, None] = {}
    for flow in run.spec.get("flows") or ():
        cca = flow.get("cca") if isinstance(flow, Mapping) else None
        name = cca.get("name") if isinstance(cca, Mapping) else cca
        if name:
            names[str(name)] = None
    return list(names)


def _planned(path: Path, start_ns: int) -> Iterator[tuple[int, float, str, str]]:
    """Events that the plan itself holds: starts of flows, and changes of links where the plan has any."""
    try:
        plan = small_json(path / "raw/plan.json")
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, ValueError) as error:
        raise StoreUsageError(f"{path / 'raw/plan.json'}: {error}; put it back, or remove it") from error
    for flow in plan.get("flows") or ():
        at_s = float(flow.get("start_s") or 0.0)
        _require_time(at_s)
        description = f"{flow.get('name')} starts ({flow.get('cca') or flow.get('app')})"
        yield start_ns + round(at_s * 1e9), at_s, "flow", _clean(description)
    for link in (plan.get("network") or {}).get("links") or ():
        for way, ends in (("forward", ("a", "b")), ("backward", ("b", "a"))):
            for name, change in (link.get(way) or {}).items():
                if name.startswith("varying_") and isinstance(change, dict):
                    where = "→".join(str(link.get(end)) for end in ends)
                    for at_ns, value in list(zip(change.get("at_ns") or (), change.get("values") or (), strict=False))[
                        1:
                    ]:
                        _require_time(int(at_ns) / 1e9)
                        description = f"{where}: {name.removeprefix('varying_')} {value:g}"
                        yield start_ns + int(at_ns), int(at_ns) / 1e9, "link", _clean(description)


def _require_time(at_s: float) -> None:
    if not 0 <= at_s < LONGEST_S:
        raise ValueError(f"raw/plan.json: {at_s:g} s is no time of a run")


def reasons(folder: RunFolder) -> Iterator[tuple[int, str, str, str]]:
    """(number, rule, severity, message)"""
    for number, reason in enumerate(folder.run.reasons):
        yield (number, _clean(reason.rule), _clean(reason.severity), _clean(reason.message))


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(_clean(value), ensure_ascii=False)


def _clean(value: Any) -> Any:
    """The value without what JSON files may hold and PostgreSQL has no place for: NUL, lone surrogates, NaN."""
    if isinstance(value, str):
        return value.replace("\0", "�").encode("utf-8", "replace").decode()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {_clean(str(name)): _clean(part) for name, part in value.items()}
    return [_clean(part) for part in value] if isinstance(value, list) else value


UNITS = {"_mbps": "Mbit/s", "_ms": "ms", "_s": "s", "_bytes": "bytes", "_packets": "packets"}


def _unit(name: str) -> str:
    return next((unit for end, unit in UNITS.items() if name.endswith(end)), "")
