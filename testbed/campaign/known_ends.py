# SPDX-License-Identifier: Apache-2.0
"""The hosts that a play of this user has named for a campaign, kept until the next play.

    <state>/campaigns/<campaign>-<digest>.json   digest: of the real path of results/<campaign>

They decide which program SSH starts and whom it reaches, so they are in the user's own state folder: a results folder may
come from somebody else. One that was moved, or brought from another machine, needs the play again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

from base.files import replace_text
from base.paths import state_dir
from testbed.campaign.ends import End


def file_of(folder: Path) -> Path:
    """Where the hosts of the campaign are kept whose results are in `folder`."""
    place = os.path.realpath(folder)
    digest = hashlib.sha256(os.fsencode(place)).hexdigest()[:32]
    return state_dir() / "campaigns" / f"{os.path.basename(place)}-{digest}.json"


def read(folder: Path) -> str:
    """What `write` has kept, as JSON; empty where no play of this user has named the hosts."""
    try:
        return file_of(folder).read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""


def write(folder: Path, hosts: Mapping[str, End]) -> None:
    """Keep the hosts of a campaign, for nobody else's eyes."""
    file = file_of(folder)
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_text(file, json.dumps({"hosts": {name: end.model_dump() for name, end in hosts.items()}}), 0o600)
