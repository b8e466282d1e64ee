# SPDX-License-Identifier: Apache-2.0
"""How much, how fast and how long a campaign may: every number of its file is bounded, and counted without stepping through it."""

from __future__ import annotations

import contextlib
import socket
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from agent import filetransfer
from agent.filetransfer import Rate, TransferError, receive, send, sent_bytes
from agent.transfer import Transfer
from base.errors import SpecError
from testbed.campaign.limits import rate_at_most_bps
from testbed.campaign.model import RUNS_AT_MOST, Campaign, load
from testbed.campaign.schedule import run_of
from testbed.campaign.times import estimated_runs, run_start_s
from tests import lab

CAMPAIGN = """\
warpbed: 1
campaign: demo
title: One size
sender: a
receivers: {b: {virtual: {topology: {name: line, params: {rate: 20mbit, delay: 5ms, buffer: 40p}}}}}
algorithms: [reno]
sizes: [1MB]
"""


def campaign(folder: Path, more: str = "") -> Campaign:
    return load(lab.write(folder, CAMPAIGN + more, "c.yml"))[0]


@pytest.mark.parametrize("what", ["pause", "every", "lasts", "transfer_at_most", "patience", "sockets"])
@pytest.mark.parametrize("text", ["99999999999999999999h", "8785h"])
def test_a_time_of_more_than_a_year_is_refused(tmp_path: Path, what: str, text: str) -> None:
    with pytest.raises(SpecError, match=rf"{what}: .*a time is at most 8784h, a year"):
        campaign(tmp_path, f"{what}: {text}\n")


@pytest.mark.timeout(20)
@pytest.mark.parametrize("lasts", ["168h", "8784h"])
def test_a_campaign_without_any_pause_is_counted_at_once(tmp_path: Path, lasts: str) -> None:
    file = lab.write(tmp_path, f"{CAMPAIGN}every: 0s\npause: 0s\nlasts: {lasts}\n", "c.yml")
    assert f"at most {RUNS_AT_MOST} runs" in lab.inside("campaign", "check", file)
    assert "not begun; 0 of about 100000" in lab.inside("campaign", "status", file, "--results", tmp_path)
    one = load(file)[0]
    assert run_start_s(one, RUNS_AT_MOST, 0.0) is not None and run_start_s(one, RUNS_AT_MOST + 1, 0.0) is None


@pytest.mark.parametrize("every", ["0s", "1ms", "7s", "1h", "40h"])
@pytest.mark.parametrize("run_s", [0.0, 0.25, 7.0, 7.0000001, 3599.9, 3600.0, 30_240.0, 1e6])
@pytest.mark.parametrize("runs", ["", "runs: 3\n"])
def test_the_number_of_runs_is_what_stepping_through_them_gives(
    tmp_path: Path, every: str, run_s: float, runs: str
) -> None:
    one = campaign(
        tmp_path, f"every: {every}\nlasts: 30s\n{runs}" if run_s < 1 else f"every: {every}\nlasts: 30h\n{runs}"
    )
    counted = estimated_runs(one, run_s)
    if counted > 20_000:
        return
    number, free_s = 0, 0.0
    while (start_s := run_start_s(one, number + 1, free_s)) is not None:
        number, free_s = number + 1, start_s + max(run_s, 1e-3)
    assert counted == number


def test_a_campaign_has_a_rate_that_no_transfer_may_exceed(tmp_path: Path) -> None:
    def bps(limits: str) -> int:
        return rate_at_most_bps(campaign(tmp_path, f"limits: {{{limits}}}\n"))

    assert rate_at_most_bps(campaign(tmp_path)) == bps("volume: 1GB") == bps("rate: 8mbit") == 10**9
    assert bps("rate_at_most: 10gbit") == 10**10 and bps("rate_at_most: 5mbit, rate: 2gbit") == 5 * 10**6
    assert bps("rate: 2gbit") == 2_500_000_000, "who asks for pacing at a rate has asked for the rate"
    with pytest.raises(SpecError, match="a rate is at most"):
        bps("rate_at_most: 99999999999999999999gbit")


def test_the_rate_at_which_a_transfer_ends_is_no_part_of_its_name(tmp_path: Path) -> None:
    """It changes none that ends by itself, and results that are there stay those of the file."""
    without, given = campaign(tmp_path), campaign(tmp_path, "limits: {rate_at_most: 10gbit}\n")
    paced = campaign(tmp_path, "limits: {rate: 10gbit}\n")
    assert [t.id for t in run_of(without, 1, "wan")] == [t.id for t in run_of(given, 1, "wan")]
    assert [t.id for t in run_of(without, 1, "wan")] != [t.id for t in run_of(paced, 1, "wan")]


def test_a_second_above_the_rate_ends_the_transfer_and_less_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s, sent = [0.0], [0]
    monkeypatch.setattr(filetransfer, "time", SimpleNamespace(monotonic=lambda: now_s[0]))
    monkeypatch.setattr(filetransfer, "sent_bytes", lambda _: sent[0])
    with socket.socket() as sock:
        rate, none = Rate(8_000_000, 0.0), Rate(None, 0.0)
        for now_s[0], sent[0] in ((0.5, 900_000), (1.0, 1_000_000), (2.5, 2_500_000), (2.9, 4_000_000)):
            rate.check(sock, 0)
            none.check(sock, 0)
        now_s[0], sent[0] = 3.5, 4_000_000
        none.check(sock, 0)
        with pytest.raises(
            TransferError, match=r"12 Mbit/s sent over 1\.0 s, more than the 8 Mbit/s of limits\.rate_at_most"
        ):
            rate.check(sock, 0)
        sent[0] = 0  # a kernel that does not count
        with pytest.raises(TransferError, match="sent over"):
            Rate(8_000_000, 2.5).check(sock, 4_000_000)


def test_the_kernel_counts_what_was_sent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as sock:
        peer, _ = server.accept()
        with peer:
            sock.sendall(bytes(50_000))
            read = 0
            while read < 50_000:
                read += len(peer.recv(50_000))
            assert sent_bytes(sock) >= 50_000


@pytest.mark.parametrize("at_most", [None, 8], ids=["no limit", "one byte a second"])
def test_a_sender_keeps_to_the_rate_that_it_is_told(monkeypatch: pytest.MonkeyPatch, at_most: int | None) -> None:
    monkeypatch.setattr(filetransfer, "RATE_OVER_S", 0.0)
    with socket.create_server(("127.0.0.2", 0)) as probe:
        port = probe.getsockname()[1]
    key, came = bytes(32), list[str]()

    def serve() -> None:
        try:
            came.append(str(receive("127.0.0.2", "127.0.0.3", port, key, 10.0)["bytes"]))
        except (TransferError, OSError) as error:
            came.append(str(error))

    service = threading.Thread(target=serve)
    service.start()
    said = ""
    try:
        while True:  # until it listens
            with contextlib.suppress(ConnectionRefusedError):
                send("127.0.0.3", "127.0.0.2", port, key, "reno", 3 << 20, None, 10.0, rate_at_most_bps=at_most)
                break
    except TransferError as error:
        said = str(error)
    finally:
        service.join(30)
    assert ("limits.rate_at_most" in said) == (at_most is not None)
    assert (came == [str(3 << 20)]) == (at_most is None) and len(came) == 1


def test_the_agent_takes_the_rate_of_a_request() -> None:
    request = {
        "side": "sender", "own": "192.0.2.1", "peer": "192.0.2.2", "interface": "eth0", "port": 5201, "deadline_s": 1.0,
        "key": "00", "rate_at_most_bps": 10**9,
    }  # fmt: skip
    assert Transfer.from_request(request).rate_at_most_bps == 10**9
