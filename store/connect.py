# SPDX-License-Identifier: Apache-2.0
"""The database's address, and the role to connect as.

WARPBED_DATABASE, or else what `./warpbed dashboards up` left in its state folder, names server and database without a
password; passwords come from PGPASSFILE or the file of mode 0600 beside that state.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from base import paths
from store import answering
from store.errors import StoreError, StoreUsageError

Role = Literal["owner", "writer", "reader"]
CONNECT_TIMEOUT_S = 10
LOCK_TIMEOUT_S = 600
"""For another command on the same run, which takes minutes where it has gigabytes."""


def state_dir() -> Path:
    """What has to outlive the cache: passwords and settings of the dashboards on this machine."""
    return paths.state_dir() / "dashboards"


def database_url(given: str | None = None) -> str:
    """The server's URL. Raises StoreUsageError where none is known or it cannot be one."""
    url = given or os.environ.get("WARPBED_DATABASE")
    if not url:
        try:
            url = (state_dir() / "database.url").read_text().strip()
        except OSError:
            raise StoreUsageError(
                "no database is known; start one with `./warpbed dashboards up`, or name one: "
                "WARPBED_DATABASE=postgresql://127.0.0.1:5432/warpbed"
            ) from None
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        raise StoreUsageError(f"database {url!r}: {str(error).strip()}; write postgresql://HOST:PORT/NAME") from error
    if parts.get("password"):
        raise StoreUsageError(
            "the database's URL holds a password; put it into the file that PGPASSFILE names (mode 0600) instead"
        )
    return url


@contextmanager
def connected(role: Role, given: str | None = None, **options: Any) -> Iterator[psycopg.Connection[Any]]:
    """A connection as warpbed_<role>, or as the user in the URL.

    Raises StoreUsageError where the server cannot be reached or does not let the role in, StoreError where it goes
    away or refuses later; a transaction that was not committed leaves nothing.
    """
    url = database_url(given)
    settings: dict[str, Any] = {"user": f"warpbed_{role}", "dbname": "warpbed", **conninfo_to_dict(url)}
    passfile = state_dir() / "pgpass"
    if "PGPASSFILE" not in os.environ and passfile.is_file():
        settings.setdefault("passfile", str(passfile))
    settings = {"connect_timeout": CONNECT_TIMEOUT_S, "application_name": "warpbed", **answering.NETWORK, **settings}
    try:
        connection = psycopg.connect(make_conninfo("", **settings), **options)
    except psycopg.OperationalError as error:
        raise StoreUsageError(_unreachable(settings, str(error))) from error
    gone = threading.Event()
    try:
        with connection, answering.watched(connection, settings) as gone:
            connection.execute("SET search_path = warpbed, public")
            connection.execute(sql.SQL("SET lock_timeout = {}").format(LOCK_TIMEOUT_S * 1000))
            connection.commit() if not connection.autocommit else None
            yield connection
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.ReadOnlySqlTransaction) as error:
        raise StoreUsageError(
            f"{settings['user']}: {_first(error)}; `./warpbed store init` gives the roles their rights"
        ) from error
    except psycopg.errors.LockNotAvailable as error:
        raise StoreError(
            f"another command has held what this one needs for {LOCK_TIMEOUT_S // 60} min ({_first(error)}); nothing of this run is "
            "stored. Once that has ended, run the same command again to resume"
        ) from error
    except psycopg.errors.DiskFull as error:
        raise StoreError(
            f"the database's disk is full ({_first(error)}); nothing of this run is stored. "
            "Free room or `./warpbed store forget` runs, then load again"
        ) from error
    except (psycopg.OperationalError, psycopg.InternalError) as error:
        reason = f"no answer for {answering.PATIENCE_S} s, nor to a new connection: is it stopped?"
        raise StoreError(
            f"the database went away or refused ({reason if gone.is_set() else _first(error)}); nothing of this run is stored. "
            "Once it is back, run the same command again to resume"
        ) from error


def _unreachable(settings: dict[str, Any], message: str) -> str:
    where = f"{settings.get('host') or 'the local socket'}:{settings.get('port') or 5432}"
    remedy = "is it running? `./warpbed dashboards up` starts one"
    if "password" in message or "authentication" in message:
        remedy = "the password is read from PGPASSFILE, or from pgpass in the state folder of `./warpbed dashboards up`"
    elif "does not exist" in message:
        remedy = "`./warpbed store init` makes database and roles"
    return (
        f"database {settings['dbname']} at {where} as {settings['user']}: {message.strip().splitlines()[-1]}; {remedy}"
    )


def _first(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
