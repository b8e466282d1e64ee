# SPDX-License-Identifier: Apache-2.0
"""Make the database and its roles, and bring its schema to this Warpbed's version.

`init` is the only thing that speaks as a superuser. Versions are the numbered files in migrations/; the tables of
records follow collectors.records.SCHEMAS and are told apart by a fingerprint.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from analysis.statistics import t_quantile
from store import tables, unpacked
from store.errors import StoreUsageError

FOLDER = Path(__file__).parent / "migrations"
ROLES = ("warpbed_owner", "warpbed_writer", "warpbed_reader")
LOCK = 0x77617270  # "warp": one migration at a time
MOST_DEGREES = 200
READER_TIMEOUT = "30s"


@dataclass(frozen=True)
class Version:
    """Number of the last migration, and the fingerprint of the record tables."""

    number: int
    tables: str


def files() -> list[Path]:
    return sorted(FOLDER.glob("[0-9][0-9][0-9][0-9]_*.sql"))


def current() -> Version:
    """What this Warpbed needs."""
    statements = "\n".join(statement for table in tables.tables() for statement in tables.ddl(table))
    return Version(int(files()[-1].name[:4]), hashlib.sha256(statements.encode()).hexdigest()[:16])


def found(connection: psycopg.Connection[Any]) -> Version | None:
    """What the database has; None where it has nothing of Warpbed."""
    row = connection.execute("SELECT to_regclass('warpbed.schema_version')").fetchone()
    if row is None or row[0] is None:
        return None
    row = connection.execute("SELECT number, tables FROM warpbed.schema_version").fetchone()
    return None if row is None else Version(*row)


def require(connection: psycopg.Connection[Any]) -> None:
    """Raises StoreUsageError unless the database has this Warpbed's schema."""
    stored, expected = found(connection), current()
    if stored == expected:
        return
    if stored is None:
        raise StoreUsageError("the database has no tables of Warpbed; `./warpbed store migrate` makes them")
    if stored.number > expected.number:
        raise StoreUsageError(
            f"the database has schema version {stored.number}, this Warpbed knows {expected.number}: it was migrated by a newer one. "
            "Update this checkout, or make the database again from the result folders with it: "
            "`./warpbed dashboards down --purge`, then `up`"
        )
    was = f"version {stored.number}" if stored.number < expected.number else "other record tables"
    raise StoreUsageError(
        f"the database's schema has {was}, this Warpbed needs version {expected.number}; `./warpbed store migrate` changes it"
    )


def migrate(connection: psycopg.Connection[Any]) -> bool:
    """Bring the schema to this version, in one transaction, as the owner; False where it is there already."""
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
        stored, expected = found(connection), current()
        if stored == expected:
            return False
        if stored is not None and stored.number > expected.number:
            require(connection)
        connection.execute("CREATE SCHEMA IF NOT EXISTS warpbed")
        connection.execute("SET LOCAL search_path = warpbed, public")
        for file in files():
            if stored is None or int(file.name[:4]) > stored.number:
                connection.execute(file.read_text())
        loose = unpacked.set_aside(connection)
        for table in tables.tables():
            for statement in tables.ddl(table):
                connection.execute(statement)
        for table in loose:
            unpacked.pack(connection, table)
        with connection.cursor() as cursor:
            rows = [(df, t_quantile(0.975, df)) for df in range(1, MOST_DEGREES + 1)]
            cursor.executemany("INSERT INTO student_t VALUES (%s, %s) ON CONFLICT DO NOTHING", rows)
        connection.execute(
            "CREATE TABLE IF NOT EXISTS schema_version (number integer NOT NULL, tables text NOT NULL, at timestamptz NOT NULL)"
        )
        connection.execute("DELETE FROM schema_version")
        connection.execute("INSERT INTO schema_version VALUES (%s, %s, now())", [expected.number, expected.tables])
        _grant(connection)
        _compress(connection)
        return True


def _grant(connection: psycopg.Connection[Any]) -> None:
    for role, rights in (("warpbed_reader", "SELECT"), ("warpbed_writer", "SELECT, INSERT, UPDATE, DELETE")):
        connection.execute(f"GRANT USAGE ON SCHEMA warpbed TO {role}")
        connection.execute(f"GRANT {rights} ON ALL TABLES IN SCHEMA warpbed TO {role}")
    connection.execute("REVOKE INSERT, UPDATE, DELETE ON schema_version, student_t FROM warpbed_writer")


NEWEST_RUN = (
    "CREATE OR REPLACE FUNCTION warpbed.newest_run() RETURNS bigint LANGUAGE sql STABLE AS "
    "'SELECT coalesce(max(run_id), 0) FROM warpbed.runs'"
)


def _compress(connection: psycopg.Connection[Any]) -> None:
    """Compress chunks of old runs, where the server's TimescaleDB can: Debian's package is built without it."""
    row = connection.execute("SELECT current_setting('timescaledb.license', true)").fetchone()
    if row is None or row[0] != "timescale":
        return
    connection.execute(NEWEST_RUN)
    for table in tables.tables():
        for statement in compression(table):
            connection.execute(statement)


def compression(table: tables.Table) -> Iterator[str]:
    """Statements that make TimescaleDB's community edition compress a table's chunks once 64 more runs are there."""
    if not table.timed:
        return
    where = f"{tables.SCHEMA}.{table.stored}"
    by = ", ".join(["run_id", *table.key])
    yield f"SELECT set_integer_now_func('{where}', 'warpbed.newest_run', replace_if_exists => true)"
    yield (
        f"ALTER TABLE {where} SET (timescaledb.compress, timescaledb.compress_segmentby = '{by}', "
        f"timescaledb.compress_orderby = '{table.order}')"
    )
    yield f"SELECT add_compression_policy('{where}', {tables.RUNS_PER_CHUNK}::bigint, if_not_exists => true)"


def init(admin: psycopg.Connection[Any], database: str, passwords: dict[str, str]) -> None:
    """Make roles and database as a superuser; what is there already gets the passwords given.

    admin: a connection in autocommit mode to the server's database `postgres`
    """
    if not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", database):
        raise StoreUsageError(f"database {database!r}: the name has to be lower-case letters, digits and _")
    for role in ROLES:
        if not admin.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role]).fetchone():
            admin.execute(sql.SQL("CREATE ROLE {}").format(sql.Identifier(role)))
        admin.execute(
            sql.SQL("ALTER ROLE {} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION PASSWORD {}").format(
                sql.Identifier(role), sql.Literal(_verifier(admin, role, passwords[role]))
            )
        )
    if not admin.execute("SELECT 1 FROM pg_database WHERE datname = %s", [database]).fetchone():
        admin.execute(
            sql.SQL("CREATE DATABASE {} OWNER warpbed_owner TEMPLATE template0 ENCODING 'UTF8'").format(
                sql.Identifier(database)
            )
        )
    admin.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(sql.Identifier(database)))
    admin.execute(
        sql.SQL("GRANT CONNECT ON DATABASE {} TO warpbed_writer, warpbed_reader").format(sql.Identifier(database))
    )
    for setting, value in (
        ("default_transaction_read_only", "on"),
        ("statement_timeout", READER_TIMEOUT),
        ("search_path", "warpbed, public"),
        ("idle_in_transaction_session_timeout", READER_TIMEOUT),
        ("jit", "off"),  # panels read thousands of rows: compiling them takes longer
        ("random_page_cost", "1.1"),  # a run's points lie side by side: its index beats reading every run's
    ):
        shown = sql.SQL(value) if setting == "search_path" else sql.Literal(value)
        admin.execute(sql.SQL("ALTER ROLE warpbed_reader SET {} = {}").format(sql.Identifier(setting), shown))


def _verifier(admin: psycopg.Connection[Any], role: str, password: str) -> str:
    """The SCRAM verifier, so that the password itself is in no statement that a server may log."""
    return admin.pgconn.encrypt_password(password.encode(), role.encode(), b"scram-sha-256").decode()


def extend(admin: psycopg.Connection[Any]) -> None:
    """Give a database TimescaleDB, as a superuser connected to it."""
    try:
        admin.execute("CREATE EXTENSION IF NOT EXISTS timescaledb")
    except psycopg.errors.UndefinedFile as error:
        raise StoreUsageError(
            "the server has no TimescaleDB; install postgresql-17-timescaledb (Debian 13) there"
        ) from error
    except psycopg.errors.InvalidParameterValue as error:  # not preloaded
        raise StoreUsageError(
            f"the server does not load TimescaleDB ({error}); set shared_preload_libraries = 'timescaledb'"
        ) from error
