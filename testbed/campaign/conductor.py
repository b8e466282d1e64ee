# SPDX-License-Identifier: Apache-2.0
"""Conduct a campaign between real hosts: one transfer at a time, for days, surviving failures.

Every step is in the journal before the next is taken. A transfer ends in one of two ways: its run folder is there, or
the journal names it as missing, with the reason; both are final until somebody asks for the missing ones again.
Whatever an end answers, and whatever an attempt ends with, concerns that attempt; only a stop and a journal that cannot be
written end the campaign.
"""

from __future__ import annotations

import ipaddress
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from analysis.run_shape import problem
from base import quantities
from base.errors import WarpbedError
from plan.model import BpfObject
from testbed.campaign import left_at_ends, remote
from testbed.campaign.attempt import Attempt, AttemptError, Place, facts_of
from testbed.campaign.ends import End
from testbed.campaign.journal import Journal, JournalError
from testbed.campaign.limits import day_left_s, exceeds_total, volume, volume_per_day
from testbed.campaign.model import Campaign
from testbed.campaign.publish import RECEIVER, SENDER
from testbed.campaign.schedule import Transfer, run_of
from testbed.campaign.times import run_start_s
from testbed.results import Results, purge_aside

HOST = "wan"
RETRY_S = 10.0
TICK_S = 1.0
SPARE_BYTES = 50 << 20
"""Room that stays free on every disk."""
KEPT_AT_MOST = 5
"""Transfers of a campaign that wait at the ends to be fetched, each with captures.budget at most."""
HOPS_AT_MOST = 64


class StoppedError(WarpbedError):
    """The campaign has been told to stop."""


class GivenUpError(WarpbedError):
    """A transfer that cannot be made; the text says why."""


@dataclass
class Conductor:
    """told: called with a line for people; cancelled: asked often, True ends at once (a transfer under way goes on
    at the hosts, and is taken up when the campaign is resumed)."""

    campaign: Campaign
    ends: dict[str, End]
    results: Results
    journal: Journal
    told: Callable[[str], None]
    cancelled: Callable[[], bool]
    again: bool = False
    objects: Mapping[str, BpfObject] = field(default_factory=dict)
    """Of algorithms that are BPF programs, by name."""
    retry_s: float = RETRY_S
    _traced: dict[tuple[int, str], list[dict[str, Any]]] = field(default_factory=dict)

    def conduct(self) -> list[str]:
        """Make all that is missing; returns the ids of what is missing at the end, in their order."""
        events = self.journal.events()
        # the same file may have been conducted in virtual time before, into the same folder
        begun_s = next((e["time"] for e in events if e["event"] == "begun" and e.get("host") == HOST), None)
        if begun_s is None:
            begun_s = self._record("begun", host=HOST)["time"]
        else:
            self._record("resumed", host=HOST)
        begun_s = min(begun_s, time.time())
        purge_aside(self.results.base)
        self._tidy()
        number = max((e["run"] for e in events if e["event"] == "run" and "run" in e), default=0)
        if self.again:
            number = 0
        free_s = 0.0
        if number == 0:
            number = 1
        missing: list[str] = []
        sums = {name: one.sha256 for name, one in self.objects.items()}
        while (start_s := run_start_s(self.campaign, number, free_s)) is not None or self._has_begun(number):
            if not self._has_begun(number):
                self._pause_until(begun_s + (start_s or 0.0), f"run {number} begins")
                self._record("run", run=number)
            for transfer in run_of(self.campaign, number, HOST, objects=sums):
                if not self._settled(transfer):
                    self._transfer(transfer)
                if not self.results.is_complete(transfer.id):
                    missing.append(transfer.id)
            free_s = time.time() - begun_s
            number += 1
        self._tidy()
        self._record("over", missing=len(missing))
        return missing

    def _tidy(self) -> None:
        """Clear the ends of what nobody will ask for again, and note what a crash has kept from being noted."""
        events = self.journal.events()
        if attempts := left_at_ends.over(events, self.results):
            for reason in left_at_ends.clear(self.ends, attempts):
                self._note("left", reason=reason)
        for transfer, count in left_at_ends.not_noted(events, self.results).items():
            self._record("done", transfer=transfer, bytes=count)

    def _record(self, event: str, **facts: Any) -> dict[str, Any]:
        """Add what the next step relies on to the journal; where its disk is full, wait for room as long as `patience`.

        Raises JournalError.
        """
        deadline = time.monotonic() + quantities.seconds(self.campaign.patience)
        told = False
        while True:
            try:
                return self.journal.add(event, **facts)
            except JournalError as error:
                if not error.is_full or time.monotonic() > deadline:
                    raise
            if not told:
                self.told(f"{self.journal.file}: the disk is full; waiting for room for {self.campaign.patience}")
                told = True
            self._wait(self.retry_s)

    def _note(self, event: str, **facts: Any) -> None:
        """Add what only tells to the journal; a full disk holds nothing up for it."""
        try:
            self.journal.add(event, **facts)
        except JournalError as error:
            if not error.is_full:
                raise

    def _has_begun(self, number: int) -> bool:
        return any(e["event"] == "run" and e.get("run") == number for e in self.journal.events())

    def _settled(self, transfer: Transfer) -> bool:
        if self.results.is_complete(transfer.id):
            return True
        return not self.again and transfer.id in {
            e.get("transfer") for e in self.journal.events() if e["event"] == "missing"
        }

    def _transfer(self, transfer: Transfer) -> None:
        events = self.journal.events()
        ended = max((e["time"] for e in events if e["event"] in ("done", "missing")), default=None)
        if ended is not None:
            # a clock that was set back since must not make it longer
            self._pause_until(min(ended, time.time()) + quantities.seconds(self.campaign.pause), "pause", transfer)
        try:
            if not self._is_there_after_all(transfer):
                self._with_attempts(transfer, [e for e in events if e.get("transfer") == transfer.id])
        except GivenUpError as error:
            self._record("missing", transfer=transfer.id, reason=str(error))
            self.told(f"{transfer.id}: missing: {error}")
            return
        self._record("done", transfer=transfer.id, bytes=transfer.size_bytes)
        self.told(f"{transfer.id}: done")

    def _is_there_after_all(self, transfer: Transfer) -> bool:
        """Whether the run could not be read a moment ago and now can be. What lies under its name and is no run is moved
        aside and kept, before anything is measured that could not be published then."""
        try:
            aside = self.results.set_aside(transfer.id)
        except (OSError, WarpbedError) as error:
            raise GivenUpError(str(error)) from error
        if aside is not None:
            self.told(f"{transfer.id}: what was there is no run; it is now {aside.name}")
        return self.results.is_complete(transfer.id)

    def _with_attempts(self, transfer: Transfer, events: list[dict[str, Any]]) -> None:
        """Make attempts until one succeeds. Raises GivenUpError after the last, or where limits or patience end it."""
        failed = [e for e in events if e["event"] == "failed"]
        begun = [e["attempt"] for e in events if e["event"] == "started"]
        concluded = {e["attempt"] for e in events if e["event"] in ("failed", "abandoned")}
        number = max(begun, default=0)
        open_attempt = number if number and number not in concluded else None
        reason, failures = "", 0 if self.again else len(failed)
        while failures < self.campaign.attempts:
            if open_attempt is None:
                self._keep_limits(transfer)
            place = self._place(transfer)
            if open_attempt is None:
                number += 1
                self._record("started", transfer=transfer.id, attempt=number, bytes=transfer.size_bytes)
            attempt = Attempt(
                self.campaign, transfer, number, place, self._wait_through, self.objects.get(transfer.cca)
            )
            try:
                if self._attempt(attempt, resumed=open_attempt is not None):
                    return
                self._record("abandoned", transfer=transfer.id, attempt=number, reason="it had not begun at the sender")
            except (StoppedError, GivenUpError, JournalError):
                raise
            except Exception as error:  # noqa: BLE001 — whatever it is, it belongs to this attempt, and the campaign goes on
                failures += 1
                reason = str(error) if isinstance(error, WarpbedError) else f"{type(error).__name__}: {error}"
                self._record("failed", transfer=transfer.id, attempt=number, reason=reason)
                self.told(f"{attempt.id}: {reason}")
                self._clear(attempt)
            open_attempt = None
        raise GivenUpError(f"{self.campaign.attempts} attempts failed, the last: {reason or 'see the journal'}")

    def _attempt(self, attempt: Attempt, resumed: bool) -> bool:
        """Make an attempt, or take up one that was begun; False where that one had never reached the sender."""
        if resumed and attempt.state() == "absent":
            self._clear(attempt)
            return False
        if not resumed:
            attempt.make()
        noted: list[str] = []

        def unreachable(reason: str) -> None:
            if not noted:
                self._note("waiting", transfer=attempt.transfer.id, reason=reason)
            noted.append(reason)

        status = attempt.await_end(unreachable)
        self._bring_home(attempt, status)
        self._clear(attempt)
        return True

    def _bring_home(self, attempt: Attempt, status: dict[str, Any]) -> None:
        """Fetch and publish; what was measured is not given up because SSH or the disk here fails for a while."""
        deadline = time.monotonic() + quantities.seconds(self.campaign.patience)
        noted = False
        while True:
            try:
                attempt.bring_home(self.results, status)
            except (remote.UnreachableError, OSError) as error:
                if time.monotonic() > deadline:
                    self._keep(attempt, error)
                if not noted:
                    self._note("waiting", transfer=attempt.transfer.id, reason=str(error))
                noted = True
                self._wait(self.retry_s)
            else:
                return

    def _keep(self, attempt: Attempt, error: Exception) -> NoReturn:
        """Leave what was measured at the ends, where the only copy is; nothing more is sent for this transfer until then."""
        reason = f"measured, but its files could not be fetched within {self.campaign.patience}: {error}"
        if len(left_at_ends.kept(self.journal.events(), self.results)) >= KEPT_AT_MOST:
            raise AttemptError(f"{reason}; those of {KEPT_AT_MOST} transfers wait at the hosts already") from error
        self._record("kept", transfer=attempt.transfer.id, attempt=attempt.number, reason=str(error))
        raise GivenUpError(f"{reason}; they stay at the hosts; `campaign execute --again` fetches them") from error

    def _clear(self, attempt: Attempt) -> None:
        for message in attempt.clear():
            self._note("left", transfer=attempt.transfer.id, attempt=attempt.number, reason=message)

    def _keep_limits(self, transfer: Transfer) -> None:
        events = self.journal.events()
        if exceeds_total(self.campaign, events, transfer.size_bytes):
            raise GivenUpError(f"limits.volume {volume(self.campaign)} is used up; the campaign file can set more")
        per_day = volume_per_day(self.campaign)
        if transfer.size_bytes > quantities.size_bytes(per_day):
            raise GivenUpError(
                f"{transfer.size} is more than limits.volume_per_day {per_day} by itself; the campaign file can set more"
            )
        while (left_s := day_left_s(self.campaign, self.journal.events(), transfer.size_bytes, time.time())) > 0:
            self._pause_until(time.time() + left_s, f"limits.volume_per_day {per_day}", transfer)

    def _place(self, transfer: Transfer) -> Place:
        """Probe both hosts until they can make the transfer.

        The sender is waited for as long as the campaign lasts, a receiver as long as the campaign's patience; GivenUpError then.
        """
        begun = time.monotonic()
        noted = ""
        while True:
            try:
                place, reason = self._try_place(transfer)
            except (StoppedError, GivenUpError, JournalError):
                raise
            except Exception as error:  # noqa: BLE001 — an answer may be anything
                place, reason = None, f"an end answers what no agent of ours does ({type(error).__name__}: {error})"
            if place is not None:
                return place
            if reason != noted:
                self._note("waiting", transfer=transfer.id, reason=reason)
                self.told(f"{transfer.id}: waiting: {reason}")
                noted = reason
            if time.monotonic() - begun > quantities.seconds(self.campaign.patience):
                raise GivenUpError(f"gave up after {self.campaign.patience}: {reason}")
            self._wait(self.retry_s)

    def _try_place(self, transfer: Transfer) -> tuple[Place | None, str]:
        sender_name, receiver_name = self.campaign.sender, transfer.receiver
        probes, interfaces = {}, {}
        home = shutil.disk_usage(self.results.folder if self.results.folder.exists() else "/").free
        needed = quantities.size_bytes(self.campaign.captures.budget) + SPARE_BYTES
        if home < 2 * needed:
            return None, f"{home // 10**6} MB free here, {2 * needed // 10**6} MB needed"
        skews = {}
        for side, name in ((SENDER, sender_name), (RECEIVER, receiver_name)):
            end = self.ends[name]
            before = time.time_ns()
            try:
                probe = remote.ask(name, end, "probe", address=end.address)
            except (remote.UnreachableError, remote.RefusedError) as error:
                return None, str(error)
            after = time.time_ns()
            if probe["interface"] is None:
                return None, f"{name}: no interface has its test address {end.address}"
            if probe["free_bytes"] < needed:
                return None, f"{name}: {probe['free_bytes'] // 10**6} MB free, {needed // 10**6} MB needed"
            # the agent answers somewhere between: half of the time that asking took is the bound
            skews[side] = {
                "offset_s": (probe["time_ns"] - (before + after) / 2) / 1e9,
                "bound_s": (after - before) / 2e9,
            }
            probes[side], interfaces[side] = probe, probe["interface"]
        if transfer.cca in self.objects:
            if not probes[SENDER].get("bpf"):
                raise GivenUpError(
                    f"{sender_name}'s kernel does not describe itself (CONFIG_DEBUG_INFO_BTF), which {transfer.cca}, a BPF program, needs"
                )
        elif transfer.cca not in probes[SENDER]["algorithms"]:
            have = " ".join(probes[SENDER]["algorithms"])
            raise GivenUpError(f"{sender_name}'s kernel has no {transfer.cca}; it has {have}")
        circumstances = {
            "ends": {side: facts_of(probe) for side, probe in probes.items()},
            "home_clock": skews,
            "clock_limit_s": quantities.seconds(self.campaign.clock.offset_at_most),
            "path": self._path(transfer),
        }
        if (wrong := problem(circumstances)) is not None:  # it would make the run one that cannot be read
            raise ValueError(wrong)
        place = Place(
            sender_name, self.ends[sender_name], receiver_name, self.ends[receiver_name], circumstances, interfaces
        )
        return place, ""

    def _path(self, transfer: Transfer) -> list[dict[str, Any]]:
        """The hops to the receiver, traced once a run."""
        if not self.campaign.traceroute:
            return []
        key = (transfer.run, transfer.receiver)
        if key not in self._traced:
            sender, receiver = self.ends[self.campaign.sender], self.ends[transfer.receiver]
            try:
                answer = remote.ask(
                    self.campaign.sender, sender, "trace", remote.TRACE_TIMEOUT_S, address=receiver.address
                )
                self._traced[key], why = _hops(answer), {}
            except Exception as error:  # noqa: BLE001 — a path that is not known costs no transfer
                self._traced[key], why = [], {"reason": str(error)}
            self._note("path", run=transfer.run, receiver=transfer.receiver, hops=self._traced[key], **why)
        return self._traced[key]

    def _pause_until(self, when_s: float, reason: str, transfer: Transfer | None = None) -> None:
        if when_s > time.time():
            self._note("pause", reason=reason, **({} if transfer is None else {"transfer": transfer.id}))
        while (rest := when_s - time.time()) > 0:
            self._wait(rest)

    def _wait_through(self, seconds: float) -> None:
        """Wait while a transfer is under way: `campaign stop` lets it end; a signal leaves it to the hosts until resumed."""
        self._wait(seconds, heed_stop=False)

    def _wait(self, seconds: float, heed_stop: bool = True) -> None:
        deadline = time.monotonic() + seconds
        while True:
            if self.cancelled() or (heed_stop and self.journal.is_stopped()):
                raise StoppedError(
                    f"{self.campaign.campaign}: stopped; run the same command again to resume with the next transfer"
                )
            rest = deadline - time.monotonic()
            if rest <= 0:
                return
            time.sleep(min(rest, TICK_S))


def _hops(answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The hops of an answer to `trace`, of which each part is what it has to be. Raises ValueError, KeyError or TypeError."""
    rows = answer["hops"]
    if not isinstance(rows, list) or len(rows) > HOPS_AT_MOST:
        raise ValueError(f"the hops are no list of at most {HOPS_AT_MOST}")
    hops = [
        {
            "hop": int(row["hop"]),
            "addresses": [str(ipaddress.ip_address(address)) for address in row["addresses"][:3]],
            "rtt_ms": [round(float(value), 3) for value in row["rtt_ms"][:3]],
        }
        for row in rows
    ]
    if (wrong := problem({"hops": hops})) is not None:
        raise ValueError(wrong)
    return hops
