# SPDX-License-Identifier: Apache-2.0
"""The subcommands of `./warpbed store`; each returns the exit code."""

from __future__ import annotations

import csv
import os
import re
import secrets
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO, TypeVar

import duckdb
import psycopg
import pyarrow as pa
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from analysis import terminal
from base.screen import print_table
from base.text import clean, json_text, safe
from store import files, folder, ingest, questions, reclaim
from store import migrate as migration
from store.answering import NETWORK
from store.connect import connected, database_url
from store.errors import StoreError, StoreUsageError

T = TypeVar("T")
R = TypeVar("R")
SIZE = "SELECT pg_database_size(current_database())"


def load(path: Path, database: str | None, out: TextIO) -> int:
    """Store all runs below a path; one that cannot be read is told and does not keep the others out (exit code 1)."""
    folders, failed, changed = folder.find(path), 0, 0
    with connected("writer", database, autocommit=True) as connection:
        migration.require(connection)
        for run in folders:
            try:
                run_rows = folder.read(run)
                if (other := ingest.contradiction(connection, run_rows)) is not None:
                    print(clean(f"warning: {other}"), file=sys.stderr)
                outcome, rows = ingest.ingest(connection, run_rows, _tell)
            except StoreUsageError as error:
                print(error.shown, file=sys.stderr)
                failed += 1
                continue
            changed += outcome != "present"
            print(clean(f"{outcome}: {run}") + (f" ({rows} rows)" if rows else ""), file=out, flush=True)
    if failed:
        raise StoreError(
            f"{failed} of {len(folders)} run folders could not be stored (the reasons are above); the others are"
        )
    if not changed:
        print(f"nothing to do: all {len(folders)} runs are in the store", file=out)
    return 0


def _tell(message: str) -> None:
    print(clean(message), file=sys.stderr, flush=True)


def init(database: str | None, admin: str, passwords: Path) -> int:
    """Roles, database and tables; the roles' passwords are those of the file, which is made where it is missing."""
    url = database_url(database)
    settings = conninfo_to_dict(url)
    name = str(settings.pop("dbname", "warpbed"))
    known = _passwords(passwords)
    for step, target in ((0, "postgres"), (1, name)):
        try:
            conninfo = make_conninfo(
                "", **{"user": admin, "connect_timeout": 10, **NETWORK, **settings, "dbname": target}
            )
            connection = psycopg.connect(conninfo, autocommit=True)
        except psycopg.OperationalError as error:
            raise StoreUsageError(
                f"cannot speak to {url} as {admin}: {str(error).strip()}; PGPASSFILE names the file with its password"
            ) from error
        with connection:
            if step == 0:
                migration.init(connection, name, known)
            else:
                migration.extend(connection)
    os.environ.setdefault("PGPASSFILE", str(passwords))
    return migrate(database)


def _passwords(file: Path) -> dict[str, str]:
    if not file.exists():
        fresh = {role: secrets.token_urlsafe(24) for role in migration.ROLES}
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as out:
            out.writelines(f"*:*:*:{role}:{password}\n" for role, password in fresh.items())
        return fresh
    if file.stat().st_mode & 0o077:
        raise StoreUsageError(f"{file}: others can read it; chmod 600 {file}")
    passwords = {}
    for line in file.read_text().splitlines():
        parts = re.split(r"(?<!\\):", line)
        if len(parts) == 5:
            passwords[parts[3]] = parts[4].replace("\\:", ":").replace("\\\\", "\\")
    if missing := [role for role in migration.ROLES if not passwords.get(role)]:
        raise StoreUsageError(
            f"{file}: no password for {', '.join(missing)}; lines are host:port:database:user:password"
        )
    return passwords


def migrate(database: str | None) -> int:
    with connected("owner", database, autocommit=True) as connection:
        changed = migration.migrate(connection)
    print("migrated" if changed else "nothing to do: the schema is this version's", f"({migration.current().number})")
    return 0


def forget(database: str | None, experiment: str, run: str | None) -> int:
    with connected("writer", database, autocommit=True) as connection:
        migration.require(connection)
        gone = ingest.forget(connection, experiment, run)
    if not gone:
        raise StoreUsageError(
            f"no run {experiment}{'/' + run if run else ''} in the database; ./warpbed store status lists experiments"
        )
    print(f"forgot {len(gone)} runs; {_given_back(database, gone)}")
    return 0


def _given_back(database: str | None, gone: list[int]) -> str:
    """What became of the space of runs that are gone: only the owner can give it back."""
    try:
        with connected("owner", database, autocommit=True) as connection:
            before = connection.execute(SIZE).fetchone()
            is_rewritten = reclaim.rewritten(connection, gone)
            after = connection.execute(SIZE).fetchone()
    except StoreUsageError as error:
        return f"their space is used by the next runs, and not given back to the disk: {error}"
    assert before is not None and after is not None
    if not is_rewritten:
        return "their space is used by the next runs; the disk has no room to rewrite the tables"
    return f"the database has {max(0, before[0] - after[0]) / 1e6:.1f} MB less"


def prune(database: str | None, keep_days: int) -> int:
    with connected("owner", database, autocommit=True) as connection:
        migration.require(connection)
        print(f"forgot {ingest.prune(connection, keep_days)} runs")
    return 0


def status(database: str | None, form: str = "table") -> int:
    with connected("reader", database, autocommit=True) as connection:
        migration.require(connection)
        rows = connection.execute(
            """
            SELECT experiment, count(*) AS runs, count(*) FILTER (WHERE verdict = 'valid') AS valid,
                max(ingested_at) AS last_stored
            FROM runs GROUP BY 1 ORDER BY 1
            """
        ).fetchall()
        size = connection.execute("SELECT pg_size_pretty(pg_database_size(current_database()))").fetchone()
    if form != "table":
        _print(questions.Answer(("experiment", "runs", "valid", "last_stored"), tuple(rows)), form)
        return 0
    for experiment, count, valid, last in rows:
        print(f"{clean(experiment)}: {count} runs, {valid} valid, last stored {last:%Y-%m-%d %H:%M:%S} UTC")
    print(f"{sum(row[1] for row in rows)} runs, {size[0] if size else ''}")
    return 0


def ask(name: str | None, arguments: Mapping[str, Any], database: str | None, results: Path | None, form: str) -> int:
    """Answer a named question; without a name, list them."""
    if name is None:
        if form != "table":
            known = tuple((q.name, q.text, " ".join(q.parameters)) for q in questions.QUESTIONS.values())
            _print(questions.Answer(("question", "text", "parameters"), known), form)
            return 0
        for question in questions.QUESTIONS.values():
            parameters = ", ".join(f"{key}={value!r}" for key, value in question.parameters.items())
            print(f"{question.name}: {question.text}{f' [{parameters}]' if parameters else ''}")
        return 0
    question = questions.find(name)
    values = questions.bound(question, arguments)
    if results is not None:
        answer = _of_files(results, question, values)
    else:
        with connected("reader", database, autocommit=True) as connection:
            migration.require(connection)
            answer = questions.ask_database(connection, question, values)
    _print(answer, form)
    return 0


def _of_files(results: Path, question: questions.Question, values: Mapping[str, Any]) -> questions.Answer:
    """The answer from the runs below a path; one that cannot be read is told and does not keep the others out."""
    paths = folder.find(results)
    whole = [one for path in paths if (one := _told(folder.read, path)) is not None]
    if not whole:
        raise StoreUsageError(f"{results}: none of its {len(paths)} run folders can be read")
    try:
        return _answer(whole, question, values)
    except (duckdb.Error, pa.ArrowException, OSError) as error:  # a record whose pages are damaged
        readable = [one for one in whole if _told(folder.require_whole, one) is not None]
        if len(readable) in (0, len(whole)):
            first = clean(next(iter(str(error).strip().splitlines()), type(error).__name__))
            raise StoreUsageError(
                f"{results}: a record cannot be read ({first}); ./warpbed collect makes the records again"
            ) from error
    return _answer(readable, question, values)


def _answer(
    folders: Sequence[folder.RunFolder], question: questions.Question, values: Mapping[str, Any]
) -> questions.Answer:
    with files.opened(folders) as views:
        return questions.ask_files(views, question, values)


def _told(read: Callable[[T], R], what: T) -> R | None:
    """What is read; None, with a line for the user, where it cannot be."""
    try:
        return read(what)
    except StoreUsageError as error:
        print(error.shown, file=sys.stderr)
        return None


def _print(answer: questions.Answer, form: str) -> None:
    if form == "json":
        print(json_text([dict(zip(answer.columns, row, strict=True)) for row in answer.rows]))
    elif form == "csv":
        rows: list[tuple[Any, ...]] = [answer.columns, *answer.rows]
        csv.writer(sys.stdout, lineterminator="\n").writerows(
            [safe(value) if isinstance(value, str) else value for value in row] for row in rows
        )
    else:
        cells = [[_cell(value) for value in row] for row in answer.rows]
        print_table(terminal.table(answer.columns, cells, terminal.Style.of_terminal()))


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return "–" if value is None else str(value)
