# SPDX-License-Identifier: Apache-2.0
"""Read a machine's own apt sources, in both of apt's formats, and find its Debian archive."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from base.errors import WarpbedError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

# What a release is called on machines that follow it by role instead of by name.
ROLES = {"oldoldstable", "oldstable", "stable", "testing"}
_YES, _NO = {"yes", "true", "with", "on", "enable", "1"}, {"no", "false", "without", "off", "disable", "0"}


@dataclass(frozen=True)
class Entry:
    """One source of packages."""

    uris: tuple[str, ...]
    suites: tuple[str, ...]
    components: tuple[str, ...]
    options: tuple[tuple[str, str], ...]  # deb822 fields such as Signed-By, as written

    @property
    def unchecked(self) -> tuple[str, ...]:
        """Options of this entry that leave out a check of signatures or dates, as written."""
        off = {"trusted": _YES, "allow-insecure": _YES, "allow-weak": _YES, "check-valid-until": _NO, "check-date": _NO}
        return tuple(f"{name}: {value}" for name, value in self.options if value.lower() in off.get(name.lower(), ()))

    def for_suite(self, suite: str) -> str:
        """A deb822 stanza for another suite of the same archive; of its indexes only the list of packages."""
        fields = [
            ("Types", "deb"),
            ("URIs", " ".join(self.uris)),
            ("Suites", suite),
            ("Components", "main"),
            *self.options,
            ("Targets", "Packages"),
        ]
        return "".join(f"{name}: {value}\n" for name, value in fields)


# Options of one-line entries and the deb822 fields that mean the same; others choose indexes and stay behind.
OPTIONS = {
    "signed-by": "Signed-By",
    "trusted": "Trusted",
    "check-valid-until": "Check-Valid-Until",
    "check-date": "Check-Date",
    "allow-insecure": "Allow-Insecure",
    "allow-weak": "Allow-Weak",
}


def parse_list(text: str) -> list[Entry]:
    """The entries of a one-line file (sources.list)."""
    entries = []
    for line in text.splitlines():
        match = re.match(r"deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)((?:\s+[^#\s]+)*)\s*(?:#.*)?$", line.strip())
        if match:
            pairs = (option.partition("=")[::2] for option in (match[1] or "").split())
            options = tuple(
                (OPTIONS[name.lower()], value.replace(",", " ")) for name, value in pairs if name.lower() in OPTIONS
            )
            entries.append(Entry((match[2],), (match[3],), tuple(match[4].split()), options))
    return entries


def parse_deb822(text: str) -> list[Entry]:
    """The entries of a deb822 file (*.sources)."""
    entries = []
    for stanza in re.split(r"\n[ \t]*\n", text):
        fields: dict[str, str] = {}
        name = ""
        for line in stanza.splitlines():
            if line.startswith("#"):
                continue
            if line[:1] in {" ", "\t"} and name:
                fields[name] += "\n" + line
            elif ":" in line:
                name, _, value = line.partition(":")
                name = name.strip().lower()
                fields[name] = value.strip()
        disabled = fields.get("enabled", "yes").lower() in {"no", "false", "0", "off", "without", "disable"}
        if disabled or "deb" not in fields.get("types", "").split():
            continue
        options = tuple((OPTIONS[key], value) for key, value in fields.items() if key in OPTIONS)
        uris, suites, components = (tuple(fields.get(key, "").split()) for key in ("uris", "suites", "components"))
        entries.append(Entry(uris, suites, components, options))
    return entries


def read_entries(source_list: Path, source_parts: Path) -> list[Entry]:
    """All entries that apt would read."""
    entries = []
    files = [source_list, *sorted(source_parts.glob("*"))] if source_parts.is_dir() else [source_list]
    for file in files:
        if not file.is_file():
            continue
        if file.suffix == ".sources":
            entries += parse_deb822(file.read_text(errors="replace"))
        elif file.suffix == ".list":
            entries += parse_list(file.read_text(errors="replace"))
    return entries


def debian_archive(entries: Iterable[Entry], release: str) -> Entry:
    """The entry from which this machine takes Debian's main component of its release."""
    for entry in entries:
        fetched = [uri for uri in entry.uris if not uri.startswith("cdrom:")]
        if fetched and "main" in entry.components and any(suite == release or suite in ROLES for suite in entry.suites):
            return Entry(tuple(fetched), entry.suites, entry.components, entry.options)
    suites = sorted({suite for entry in entries for suite in entry.suites}) or ["none"]
    raise WarpbedError(
        f"apt has no source of Debian {release} main, from which the other suites could be derived; "
        f"its suites are: {', '.join(suites)}\nAdd Debian's archive to the apt sources, or put the linux-source package "
        "into the cache's sources/ folder."
    )
