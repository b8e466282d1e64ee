# SPDX-License-Identifier: Apache-2.0
"""One attempt at one transfer between two hosts: receiver first, then sender, then everything home.

The sender's own record decides whether a transfer took place. An attempt that a crash of this side has cut is taken up
again where the hosts are: asked for by its id, it is waited for or fetched, and made anew only where the sender has never
begun it.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from base import quantities
from base.errors import WarpbedError
from base.files import replace_text
from plan.model import BpfObject
from testbed.campaign import remote
from testbed.campaign.ends import End
from testbed.campaign.limits import rate_at_most_bps
from testbed.campaign.model import Campaign
from testbed.campaign.objects import packed
from testbed.campaign.publish import RECEIVER, SENDER, arrange
from testbed.campaign.schedule import Transfer
from testbed.campaign.virtual import PCAP_HEADER_BYTES, packets_within
from testbed.collecting import collect_fetched
from testbed.results import Results

POLL_S = 0.5
POLL_AT_MOST_S = 5.0
PCAP_FILE_BYTES, LARGEST_PACKET_BYTES = 24, 256 << 10
"""The largest packet that tcpdump keeps, whatever it is told."""
SLACK_S = 60.0
"""What an end gets beyond the time of the transfer itself before it ends by itself."""


class AttemptError(WarpbedError):
    """The attempt gave no result; another one may."""


@dataclass(frozen=True)
class Place:
    """The two hosts of a transfer, and what is known of them at this moment (their probes, the path)."""

    sender_name: str
    sender: End
    receiver_name: str
    receiver: End
    circumstances: dict[str, Any]
    interfaces: dict[str, str]


@dataclass
class Attempt:
    campaign: Campaign
    transfer: Transfer
    number: int
    place: Place
    wait: Callable[[float], None]
    """Sleeps; raises where the campaign has been told to end at once."""
    bpf: BpfObject | None = None
    """The algorithm, where it is a BPF program."""

    @property
    def id(self) -> str:
        return f"{self.transfer.id}.a{self.number}"

    def make(self) -> None:
        """Begin the transfer at both ends. Raises AttemptError, UnreachableError or RefusedError."""
        key = secrets.token_hex(32)
        self._begin(RECEIVER, key, "ready")
        self._begin(SENDER, key, "running")

    def _begin(self, side: str, key: str, wanted: str) -> None:
        name, end, peer = self._side(side)
        status = remote.ask(name, end, "start", id=self.id, transfer=self._request(side, end, peer, key))
        if status["state"] not in (wanted, "ended"):
            raise AttemptError(f"{name}: {status['state']}: {status.get('reason', '')}")
        if status["state"] == "ended" and not status["ok"]:
            raise AttemptError(f"{name}: {status['reason']}")

    def _side(self, side: str) -> tuple[str, End, End]:
        p = self.place
        if side == SENDER:
            return p.sender_name, p.sender, p.receiver
        return p.receiver_name, p.receiver, p.sender

    def _request(self, side: str, end: End, peer: End, key: str) -> dict[str, Any]:
        campaign, transfer = self.campaign, self.transfer
        pacing = None if campaign.limits.rate is None else quantities.rate_bps(campaign.limits.rate)
        snap = campaign.captures.snap
        return {
            "side": side, "own": end.address, "peer": peer.address, "interface": self.place.interfaces[side],
            "port": self.place.receiver.port, "key": key, "cca": transfer.cca, "size_bytes": transfer.size_bytes,
            "deadline_s": quantities.seconds(campaign.transfer_at_most) + (SLACK_S if side == RECEIVER else 0.0),
            "pacing_bps": pacing, "rate_at_most_bps": rate_at_most_bps(campaign),
            "snap_bytes": 0 if snap == "all" else quantities.size_bytes(snap),
            "packets_at_most": packets_within(campaign),
            "sockets_interval_s": quantities.seconds(campaign.sockets),
            **({} if self.bpf is None or side == RECEIVER else {"bpf": packed(self.bpf)}),
        }  # fmt: skip

    def state(self) -> str:
        """What the sender knows of this attempt: absent, starting, running, ended or lost."""
        return str(remote.ask(self.place.sender_name, self.place.sender, "status", id=self.id)["state"])

    def await_end(self, unreachable: Callable[[str], None]) -> dict[str, Any]:
        """Wait until the sender has ended; an SSH connection that fails meanwhile is made again.

        unreachable: called with the reason whenever the sender cannot be asked. Raises AttemptError where the transfer failed.
        """
        deadline = time.monotonic() + quantities.seconds(self.campaign.transfer_at_most) + SLACK_S
        patience_s, pause_s = quantities.seconds(self.campaign.patience), POLL_S
        while True:
            try:
                status = remote.ask(self.place.sender_name, self.place.sender, "status", id=self.id)
            except remote.UnreachableError as error:
                unreachable(str(error))
                if time.monotonic() > deadline + patience_s:
                    raise AttemptError(f"{error}; whether the transfer took place is not known") from error
                self.wait(pause_s)
                continue
            if status["state"] == "ended":
                break
            if status["state"] in ("lost", "absent") or time.monotonic() > deadline:
                raise AttemptError(f"{self.place.sender_name}: {status.get('reason') or status['state']}")
            self.wait(pause_s)
            pause_s = min(POLL_AT_MOST_S, pause_s * 1.2)
        if not status["ok"]:
            raise AttemptError(f"{self.place.sender_name}: {status['reason']}")
        return status

    def bring_home(self, results: Results, sender_status: dict[str, Any]) -> Path:
        """Fetch both ends' files, collect them, publish the run. Raises UnreachableError, AttemptError, OSError."""
        p = self.place
        receiver_status = self._receiver_ended()
        if not receiver_status["ok"]:
            raise AttemptError(f"{p.receiver_name}: {receiver_status['reason']}")
        states = {SENDER: sender_status, RECEIVER: receiver_status}
        with results.aside() as folder:
            files = {}
            for side in (SENDER, RECEIVER):
                name, end, _ = self._side(side)
                files[side] = folder.with_name(f"{folder.name}.{side}")
            with contextlib.ExitStack() as stack:
                for side, target in files.items():
                    name, end, _ = self._side(side)
                    stack.callback(_remove, target)
                    remote.fetch(
                        name,
                        end,
                        self.id,
                        target,
                        heed=lambda: self.wait(0.0),
                        capture_bytes=_capture_bytes(self.campaign),
                    )
                circumstances = {**p.circumstances, "attempt": self.number}
                if self.bpf is not None:
                    circumstances["bpf"] = {self.bpf.cca: self.bpf.sha256}
                try:
                    arrange(folder, files, states, self.campaign, self.transfer, p.receiver.port, circumstances)
                except OSError:
                    raise  # this machine's disk: waited for
                except Exception as error:
                    raise self._kept(results, folder, str(error) or type(error).__name__) from error
                trouble = collect_fetched(folder, heed=lambda: self.wait(0.0))
                if trouble is not None and trouble.is_disk:
                    raise OSError(trouble.detail)
                if trouble is not None:
                    raise self._kept(results, folder, trouble.detail)
            return results.publish(folder, self.transfer.id)

    def _kept(self, results: Results, folder: Path, detail: str) -> AttemptError:
        """What was measured but gives no result is kept for a look, and this attempt's alone."""
        kept = _keep_failed(results, folder, self.transfer.id, detail)
        return AttemptError(f"measured, but collecting failed: {detail} (see {kept / 'raw'})")

    def _receiver_ended(self) -> dict[str, Any]:
        """The receiver's last status; it ends by itself within moments of the sender."""
        p = self.place
        for _ in range(20):
            status = remote.ask(p.receiver_name, p.receiver, "status", id=self.id)
            if status["state"] not in ("ready", "starting"):
                break
            self.wait(POLL_S)
        else:
            status = remote.ask(p.receiver_name, p.receiver, "close", id=self.id)
        if status["state"] != "ended":
            raise AttemptError(f"{p.receiver_name}: {status.get('reason') or status['state']}")
        return status

    def clear(self) -> list[str]:
        """Close the service and remove the files at both ends; returns what could not be reached."""
        left = []
        for side in (RECEIVER, SENDER):
            name, end, _ = self._side(side)
            try:
                remote.ask(name, end, "remove", id=self.id)
            except WarpbedError as error:
                left.append(str(error))
        return left


def _capture_bytes(campaign: Campaign) -> int:
    """How long an end's capture is at most: packets that a card segments are kept as one."""
    snap = LARGEST_PACKET_BYTES if campaign.captures.snap == "all" else quantities.size_bytes(campaign.captures.snap)
    return PCAP_FILE_BYTES + packets_within(campaign) * (PCAP_HEADER_BYTES + min(snap, LARGEST_PACKET_BYTES))


def _keep_failed(results: Results, folder: Path, run_id: str, detail: str) -> Path:
    """Keep a run folder whose raw files give no result, under a name that says so."""
    file = folder / "run.json"
    if file.is_file():
        document = json.loads(file.read_text())
        document.update(status="failed", error={"stage": "collect", "subject": run_id, "detail": detail})
        replace_text(file, json.dumps(document, indent=1) + "\n")
    return results.publish_failed(folder, run_id)


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def facts_of(probe: dict[str, Any]) -> dict[str, Any]:
    """What of a probe is kept with a transfer."""
    return {key: probe[key] for key in ("clock", "boot_id", "interface")} | {"release": probe["kernel"]["release"]}
