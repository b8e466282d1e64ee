# SPDX-License-Identifier: Apache-2.0
"""The RO-Crate description of a bundle, by the `rocrate` library, in the profile of process runs."""

from __future__ import annotations

import datetime
import json
import mimetypes
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from base.errors import UsageError
from base.version import VERSION
from testbed.bundle.contents import Part
from testbed.bundle.manifest import Content

PROFILE = "https://w3id.org/ro/wfrun/process/0.5"
WARPBED = "#warpbed"
TYPES = {
    ".parquet": "application/vnd.apache.parquet",
    ".yml": "application/yaml",
    ".pcap": "application/vnd.tcpdump.pcap",
    ".zst": "application/zstd",
}


def description(title: str, parts: Sequence[Part], files: Mapping[str, Content], licence: str, commit: str) -> bytes:
    """ro-crate-metadata.json; equal for equal results.

    licence: of the results, an SPDX identifier. Raises UsageError where rocrate is not installed.
    """
    try:
        from rocrate.model.contextentity import ContextEntity
        from rocrate.rocrate import ROCrate
    except ImportError as error:
        raise UsageError(f"{error}; ./warpbed bundle installs it by itself, python -m testbed does not") from error
    crate = ROCrate(gen_preview=False)
    ended = max((int(run.timing.get("ended", 0)) for part in parts for run in part.runs), default=0)
    day = datetime.datetime.fromtimestamp(ended, datetime.UTC).date().isoformat()

    def entity(identifier: str, kind: str, **properties: Any) -> Any:
        return crate.add(ContextEntity(crate, identifier, properties={"@type": kind, **properties}))

    profile = entity(PROFILE, "CreativeWork", name="Process Run Crate", version="0.5")
    address = f"https://spdx.org/licenses/{licence}"
    root = crate.root_dataset
    root["name"], root["datePublished"] = title, day
    root["description"] = (
        f"Experiments of Warpbed with their runs, records and figures. ./warpbed rerun makes the runs again and compares. "
        f"{sum(len(part.runs) for part in parts)} runs of {len(parts)} experiments."
    )
    root["license"] = entity(address, "CreativeWork", name=licence)
    root["conformsTo"] = profile
    software = entity(
        WARPBED, "SoftwareApplication", name="Warpbed", softwareVersion=VERSION, version=commit or VERSION
    )
    entities = {
        name: crate.add_file(
            dest_path=name,
            properties={
                "name": PurePosixPath(name).name,
                "contentSize": str(content.bytes),
                "sha256": content.sha256,
                "encodingFormat": TYPES.get(PurePosixPath(name).suffix)
                or mimetypes.guess_type(name)[0]
                or "application/octet-stream",
            },
        )
        for name, content in files.items()
    }
    for part in parts:
        about = part.prepared.experiment
        places = (f"results/{part.name}/", f"figures/{part.name}/")
        generated = [entities[name] for name in files if name.startswith(places)]
        entities[part.file]["description"] = about.title
        entity(
            f"#run-{part.name}",
            "CreateAction",
            name=f"Runs of {part.name}",
            instrument=software,
            object=entities[part.file],
            result=generated,
            startTime=_time(part, first=True),
            endTime=_time(part, first=False),
        )
    document = crate.metadata.generate()
    for one in document["@graph"]:
        if one["@id"] == "./":
            one["datePublished"] = day
    return (json.dumps(document, indent=1, ensure_ascii=False, sort_keys=True) + "\n").encode()


def _time(part: Part, *, first: bool) -> str:
    """When the first run began or the last one ended, to the second."""
    times = [
        int(run.timing.get("ended", 0)) - (int(float(run.timing.get("wall_s", 0))) if first else 0) for run in part.runs
    ]
    return datetime.datetime.fromtimestamp(min(times) if first else max(times), datetime.UTC).isoformat()
