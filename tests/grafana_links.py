# SPDX-License-Identifier: Apache-2.0
"""Dashboards as Grafana opens them: what a URL makes of the variables, and which URLs the links of a dashboard are.

After Grafana's own code (9.4: variables/state/actions.ts, variables/query/adapter.ts, templating/template_srv.ts, formatRegistry):
All is the word `All` in a URL; a variable that takes one value, or several without All, has no such option, and what reaches its
queries then is no value at all; an empty list is no text at all.
"""

from __future__ import annotations

import itertools
import re
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import psycopg

from benchmarks import grafana

ALL = "All"
State = dict[str, list[str]]
"""Variable → the values that it puts into queries."""
PART = re.compile(r"\$\{(\w+):(queryparam|percentencode|raw)\}")
FIELD = re.compile(r"\$\{__data\.fields\.(\w+)(:percentencode)?\}")


def options(connection: psycopg.Connection[Any], variable: Mapping[str, Any], values: State) -> list[str]:
    rows = connection.execute(grafana.interpolate(variable["query"], values)).fetchall()
    return [str(row[0]) for row in rows]


def opened(
    connection: psycopg.Connection[Any], content: Mapping[str, Any], parameters: Mapping[str, Sequence[str]]
) -> State:
    """A dashboard opened by a URL: each variable after those that its query uses."""
    values: State = {}
    for variable in content["templating"]["list"]:
        possible = options(connection, variable, values)
        given = parameters.get(f"var-{variable['name']}")
        if variable["multi"]:
            every = possible if variable["includeAll"] else possible[:1]
            assert given is None or list(given) != [ALL] or variable["includeAll"], f"{variable['name']} has no {ALL}"
            values[variable["name"]] = every if given is None or list(given) == [ALL] else list(given)
        elif given is None or variable["hide"] == 2:
            values[variable["name"]] = possible[:1]
        else:
            assert len(given) == 1 and given != [ALL], f"{variable['name']} takes one value and is given {given}"
            values[variable["name"]] = list(given)
    return values


def states(connection: psycopg.Connection[Any], content: Mapping[str, Any]) -> Iterator[tuple[State, set[str]]]:
    """(values, the variables that say All): for every experiment, each other variable at its ends, and every list full, short, empty."""
    visible = [variable for variable in content["templating"]["list"] if variable["hide"] == 0]
    first, *others = visible
    for at_first in _choices(options(connection, first, {}), first):
        base = {f"var-{first['name']}": at_first}
        try:
            start = opened(connection, content, base)
        except AssertionError as error:
            raise AssertionError(f"{content['title']}: {error}") from error
        changes: list[dict[str, list[str]]] = [{}]
        for variable in others:
            possible = options(connection, variable, start)
            changes += [{f"var-{variable['name']}": choice} for choice in _choices(possible[:2], variable)]
        for change in changes:
            given = {**base, **change}
            says_all = {
                variable["name"]
                for variable in visible
                if variable["includeAll"] and given.get(f"var-{variable['name']}", [ALL]) == [ALL]
            }
            yield opened(connection, content, given), says_all


def _choices(possible: Sequence[str], variable: Mapping[str, Any]) -> list[list[str]]:
    singles = [[value] for value in possible]
    every = [[ALL]] if variable["includeAll"] else []
    return [*every, [], list(possible[:2]), *singles] if variable["multi"] else singles


def address(url: str, values: Mapping[str, Sequence[str]], says_all: set[str]) -> tuple[str, dict[str, list[str]]]:
    """A link's target (uid) and parameters, as a click follows it."""

    def put(match: re.Match[str]) -> str:
        name, form = match.groups()
        chosen = list(values[name])
        if form == "queryparam":
            chosen = [ALL] if name in says_all else chosen
            return "&".join(f"var-{name}={urllib.parse.quote(value, safe='')}" for value in chosen)
        assert name not in says_all, f"{url}: {name} may say All"
        return (
            (chosen[0] if chosen else "") if form == "raw" else urllib.parse.quote(chosen[0] if chosen else "", safe="")
        )

    return parsed(PART.sub(put, url))


def of_row(url: str, row: Mapping[str, Any]) -> tuple[str, dict[str, list[str]]]:
    """A link in a table's cell."""

    def put(match: re.Match[str]) -> str:
        text = str(row[match[1]])
        return urllib.parse.quote(text, safe="") if match[2] else text

    return parsed(FIELD.sub(put, url))


def parsed(url: str) -> tuple[str, dict[str, list[str]]]:
    assert "$" not in url, f"{url}: something is left to put in"
    parts = urllib.parse.urlsplit(url)
    return parts.path.removeprefix("/d/"), urllib.parse.parse_qs(parts.query, keep_blank_values=True)


def cell_links(panel: Mapping[str, Any]) -> Iterator[str]:
    """URLs of the links in a panel's cells."""
    properties = itertools.chain.from_iterable(
        override["properties"] for override in panel["fieldConfig"]["overrides"] or ()
    )
    for one in properties:
        if one["id"] == "links":
            yield from (link["url"] for link in one["value"])
