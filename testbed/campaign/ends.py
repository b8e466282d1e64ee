# SPDX-License-Identifier: Apache-2.0
"""The hosts of a campaign: who they are, how they are reached, and that the receivers have agreed to be targets.

The play gives them from the inventory, without any secret; testbed.campaign.known_ends keeps them.
"""

from __future__ import annotations

import ipaddress
import json
from typing import Annotated, Any

from pydantic import AfterValidator, Field, ValidationError

from base.errors import UsageError
from base.nearest import nearest
from base.text import clean
from schema.base import Model
from testbed.campaign import ssh_options
from testbed.campaign.model import Campaign


def _target(text: str) -> str:
    address = ipaddress.IPv4Address(text)
    if (
        address.is_multicast
        or address.is_unspecified
        or address.is_reserved
        or address == ipaddress.IPv4Address("255.255.255.255")
    ):
        raise ValueError(f"{text}: not the address of a host")
    return text


def _options(words: list[str]) -> list[str]:
    ssh_options.check(words)
    return words


class End(Model):
    """A host. `address` is the test address; `host`, `user`, `ssh_port`, `key` and `ssh_options` are how SSH reaches it.

    consent: who has agreed that this host receives, and when; receivers without it are never targets
    """

    address: Annotated[str, AfterValidator(_target)]
    host: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:-]*[A-Za-z0-9_.:]$")]
    user: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$")] | None = None
    ssh_port: Annotated[int, Field(ge=1, le=65535)] = 22
    key: str | None = None
    ssh_options: Annotated[list[str], AfterValidator(_options)] = Field(default_factory=list)
    become: bool = True
    root: Annotated[str, Field(pattern=r"^/[A-Za-z0-9_./-]+$")] = "/var/lib/warpbed"
    agent: Annotated[str, Field(pattern=r"^/[A-Za-z0-9_./-]+$")]
    port: Annotated[int, Field(ge=1024, le=65535)] = 5201
    consent: str = ""


class Ends(Model):
    """What the play says: hosts that it has prepared, and names of those that it could not (it has told why)."""

    hosts: dict[str, End]
    absent: list[str] = Field(default_factory=list)


def parse(text: str, campaign: Campaign, kept: str = "") -> dict[str, End]:
    """Sender and receivers of a campaign, from the play's JSON.

    kept: what an earlier start was told, for hosts that the play could not prepare this time; the campaign waits for those.
    Raises UsageError where a host is not in the inventory or was never prepared, a receiver has not agreed, or two have
    the same address.
    """
    document = _read(text)
    known = _read(kept).hosts if kept and document.absent else {}
    hosts = {**{name: end for name, end in known.items() if name in document.absent}, **document.hosts}
    names = [campaign.sender, *campaign.receivers]
    for name in names:
        if name in document.absent and name not in hosts:
            raise UsageError(
                f"{name} could not be prepared (the reason is above); nothing was started: mend it, or its entry"
            )
        if name not in hosts:
            raise UsageError(
                f"{name} of the campaign is not in the inventory's group wan; {clean(nearest(name, hosts))}"
            )
    for name in campaign.receivers:
        if not hosts[name].consent.strip():
            raise UsageError(
                f"{name} is not a consenting receiver: set wan_consent in the inventory to who has agreed, and when"
            )
    addresses = [hosts[name].address for name in names]
    if len(set(addresses)) != len(addresses):
        raise UsageError("inventory: two hosts of the campaign have the same wan_address")
    return {name: hosts[name] for name in names}


def _read(text: str) -> Ends:
    try:
        data: Any = json.loads(text)
        return Ends.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UsageError(f"inventory: {clean(where)}: {first.get('input')!r}: {first['msg']}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"--ends: not JSON: {error}; playbooks/wan_campaign.yml gives it from the inventory"
        ) from error
