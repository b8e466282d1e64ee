# SPDX-License-Identifier: Apache-2.0
"""The schema of traffic: what runs beside the flows, or instead of them. docs/traffic.md explains every kind.

Every kind has a name, the node that sends the data (`from`) and the one that gets it (`to`), a `start` and a `stop`.
The kinds are the classes of schema/traffic/kinds/ with a `kind`.
"""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import Field, model_validator

from base.discovery import modules_of
from schema.base import Model, Name, Time
from schema.traffic import kinds
from schema.traffic.entry import Entry, TcpEntry, Times

__all__ = ["KINDS", "Entry", "Starts", "TcpEntry", "Traffic"]


def _kinds() -> dict[str, type[Entry]]:
    """The classes by their kinds."""
    classes: dict[str, type[Entry]] = {}
    for module in modules_of(kinds):
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, Entry) and "kind" in value.model_fields:
                (name,) = get_args(value.model_fields["kind"].annotation)
                classes[name] = value
    return classes


KINDS = _kinds()
if TYPE_CHECKING:
    Traffic = Any
else:
    Traffic = Annotated[functools.reduce(operator.or_, KINDS.values()), Field(discriminator="kind")]


class Starts(Model):
    """When several flows or traffics start: one after the other, or at random times.

    of: their names, or `flows`, `traffic` or `all`
    every: gaps from one start to the next; within: each somewhere, uniformly, in that time after `first`
    order: as listed, or shuffled by the seed
    """

    of: Literal["flows", "traffic", "all"] | Annotated[list[Name], Field(min_length=1)]
    first: Time = "0s"
    every: Times | None = None
    within: Time | None = None
    order: Literal["listed", "shuffled"] = "listed"

    @model_validator(mode="after")
    def _one_way(self) -> Starts:
        if (self.every is None) == (self.within is None):
            raise ValueError("give `every` (one after the other) or `within` (at random in that time)")
        return self
