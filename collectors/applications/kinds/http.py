# SPDX-License-Identifier: Apache-2.0
"""Browsing and video over HTTP."""

from __future__ import annotations

from typing import Any

from collectors.applications.kind import Kind, Sides, own
from plan.model import TrafficPlan


def http(sides: Sides, _parts: list[TrafficPlan]) -> dict[str, Any]:
    (client,), (server,) = sides["client"], sides["server"]
    return {**own(client), "requests": server.get("requests")}


KINDS = {kind: Kind(http, data_comes_from_the_server=True) for kind in ("web", "video")}
