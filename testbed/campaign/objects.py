# SPDX-License-Identifier: Apache-2.0
"""The algorithms of a campaign that are BPF programs: objects that travel to the sender with each attempt."""

from __future__ import annotations

import base64
from pathlib import Path

from agent.transfer import LARGEST_OBJECT_BYTES
from base.errors import UsageError
from plan.model import BpfObject
from schema.load import Document
from testbed import compile_bpf
from testbed.campaign.model import Campaign


def objects_of(campaign: Campaign, document: Document) -> dict[str, BpfObject]:
    """By algorithm; made by clang where the file names a source.

    Raises SpecError for a file that is none or cannot be made, and UsageError for one that is too large to be sent.
    """
    uses = [(("algorithms", i), campaign.cca(name)) for i, name in enumerate(campaign.algorithms)]
    made = {one.cca: one for one in compile_bpf.objects(uses, document, in_virtual=False)}
    for one in made.values():
        if (length := Path(one.path).stat().st_size) > LARGEST_OBJECT_BYTES:
            raise UsageError(
                f"{one.path}: {length} bytes; an object of at most {LARGEST_OBJECT_BYTES} is sent to the sender"
            )
    return made


def packed(one: BpfObject) -> str:
    """The object as a request carries it (agent.transfer.Transfer.bpf)."""
    return base64.b64encode(Path(one.path).read_bytes()).decode()
