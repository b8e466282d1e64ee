# SPDX-License-Identifier: Apache-2.0
"""bundle.json: what a bundle holds. The first file that is read of somebody else's, so every text and list in it has bounds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from base.errors import UsageError

NAME = "bundle.json"
CRATE = "ro-crate-metadata.json"
VERSION = 1
MOST_FILES = 200_000
MOST_CHARACTERS, MOST_PARTS, MOST_PART_BYTES = 600, 10, 240
TOPS = ("LICENSES", "environment", "experiments", "figures", "results", "sources")
ALONE = ("CITATION.cff", "README.md", CRATE)
"""Files at the top, beside bundle.json."""
_PART = re.compile(r"[A-Za-z0-9_+=,@%~-][A-Za-z0-9_+=,@%~. -]*")

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
RunId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$")]


def name_problem(name: str) -> str:
    """Why a file in a bundle may not be called so; empty where it may: plain characters, downwards only, where files of bundles lie."""
    if len(name) > MOST_CHARACTERS:
        return f"has {len(name)} characters, at most {MOST_CHARACTERS}"
    parts = name.split("/")
    if len(parts) > MOST_PARTS:
        return f"lies {len(parts)} folders deep, at most {MOST_PARTS}"
    for part in parts:
        if not _PART.fullmatch(part) or part.endswith((" ", ".")):
            return "has a part that is empty, hidden, leads upwards, or holds other characters than letters, digits, blanks and ._-+=,@%~"
        if len(part) > MOST_PART_BYTES:
            return f"has a part of {len(part)} characters, at most {MOST_PART_BYTES}"
    if (len(parts) == 1 and name not in ALONE) or (len(parts) > 1 and parts[0] not in TOPS):
        return f"lies where bundles have nothing; allowed: {', '.join((*ALONE, *(f'{top}/' for top in TOPS)))}"
    return ""


class _Plain(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Content(_Plain):
    """A file: its length and digest."""

    bytes: Annotated[int, Field(ge=0, le=1 << 50)]
    sha256: Sha256


class Recorded(_Plain):
    """An experiment. file: its path in the bundle; runs: those whose results are in results/<name>/<run>."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,39}$")]
    file: Annotated[str, Field(max_length=MOST_CHARACTERS)]
    host: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,39}$")]
    runs: Annotated[list[RunId], Field(min_length=1, max_length=100_000)]
    missing: Annotated[int, Field(ge=0, le=100_000)]


class Manifest(_Plain):
    """bundle.json. captures: whether the runs' captures and raw samples are in it; commit: of the checkout, empty where not known."""

    warpbed_bundle: Literal[1]
    title: Annotated[str, Field(max_length=400)]
    version: Annotated[str, Field(max_length=40)]
    commit: Annotated[str, Field(pattern=r"^([0-9a-f]{40,64}(-changed)?)?$")]
    captures: bool
    experiments: Annotated[list[Recorded], Field(min_length=1, max_length=1000)]
    files: Annotated[dict[str, Content], Field(min_length=1, max_length=MOST_FILES)]

    @field_validator("files")
    @classmethod
    def _named(cls, files: Mapping[str, Content]) -> Mapping[str, Content]:
        seen: dict[str, str] = {}
        for name in files:
            if wrong := name_problem(name):
                raise ValueError(f"{name[:80]!r} {wrong}")
            if (other := seen.setdefault(name.casefold(), name)) != name:
                raise ValueError(f"{name!r} and {other!r} are one file where capitals do not count")
        return files

    @field_validator("experiments")
    @classmethod
    def _apart(cls, experiments: list[Recorded]) -> list[Recorded]:
        for what, values in (("name", [one.name for one in experiments]), ("file", [one.file for one in experiments])):
            if len(set(values)) < len(values):
                raise ValueError(f"two experiments have the same {what}")
        return experiments


def parse(text: bytes, where: str) -> Manifest:
    """The manifest of a bundle; raises UsageError with the first thing that is wrong about it."""
    try:
        return Manifest.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(str(part) for part in first["loc"])[:200]
        raise UsageError(
            f"{where}: {NAME}: {place + ': ' if place else ''}{first['msg']}; not a bundle of this Warpbed"
        ) from error
