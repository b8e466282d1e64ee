# SPDX-License-Identifier: Apache-2.0
"""Each paper's experiment runs in a short form: fewer seconds, fewer variations.

What the papers' numbers are held against is measured with the files as they are: ./warpbed run experiments/PAPER/FILE.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from base.quantities import seconds, size_bytes
from hosts.virtual.launch import GuestKernel
from testbed.experiments import prepare
from tests import kept_results, lab, wire_tools

EXPERIMENTS = sorted((lab.ROOT / "experiments").rglob("*.yml"))
PAPERS = ("afifi2014", "ho2008", "kato2012", "tokuda2003", "yu2009")


@dataclass(frozen=True)
class Short:
    """A short form: its length in seconds and the variations that are run."""

    seconds: int
    only: str


SHORT = {
    "afifi2014/claim9-short.yml": Short(6, "cca=ftat"),
    "afifi2014/claim9-free-short.yml": Short(6, "cca=ftat,seed=1"),
    "afifi2014/fig13-15.yml": Short(20, "cca=ftat"),
    "afifi2014/fig27-30.yml": Short(20, "cca=ftat"),
    "afifi2014/fig37-39-short.yml": Short(10, "rate=2mbit"),
    "afifi2014/fig39-536-short.yml": Short(10, ""),
    "afifi2014/fig41-short.yml": Short(10, ""),
    "afifi2014/geo-one-way.yml": Short(20, "cca=ftat|hybla"),
    "afifi2014/geo-one-way-536.yml": Short(20, "cca=hybla"),
    "afifi2014/short-transfers.yml": Short(20, "cca=ftat"),
    "afifi2014/windows.yml": Short(10, "cca=westwood"),
    "ho2008/fig4.2-4.4.yml": Short(4, "rate=10mbit,seed=1"),
    "ho2008/fig4.2-4.4-real.yml": Short(4, "rate=10mbit,seed=1"),
    "ho2008/fig5.16.yml": Short(10, "cca=medley,loss=bit-errors loss=1% of=1014B,seed=1"),
    "ho2008/fig5.11-5.12-short.yml": Short(6, "cca=medley,rate=10mbit,seed=1"),
    "ho2008/fig5.12-buffer-short.yml": Short(6, "rate=10mbit,seed=1"),
    "ho2008/fig5.18-5.26-short.yml": Short(3, "cca=medley,m=1,seed=1"),
    "ho2008/fig5.16-without-sack.yml": Short(6, "cca=fast,loss=bit-errors loss=1% of=1014B,seed=1"),
    "ho2008/fig5.18-5.26-large-short.yml": Short(3, "m=1,seed=1"),
    "ho2008/fig5.18-5.26-without-sack-short.yml": Short(3, "m=1,seed=1"),
    "ho2008/tab5.3-without-sack-short.yml": Short(3, "cca=fast,seed=1"),
    "ho2008/tab5.7-5.8-timeouts-short.yml": Short(3, "seed=1"),
    "ho2008/fig5.5-5.10-short.yml": Short(6, "cca=medley,rate=5mbit,buffer=50p,seed=1"),
    "ho2008/fig5.5-5.8-climb-short.yml": Short(6, "cca=medley,rate=5mbit,buffer=50p,seed=1"),
    "ho2008/s1.2-delay-vs-loss.yml": Short(4, "near=vegas,far=reno,seed=1"),
    "ho2008/s1.2-vegas-even.yml": Short(4, "seed=1"),
    "ho2008/s1.2-startup.yml": Short(4, "length=10s,seed=1"),
    "ho2008/s2.4-vegas.yml": Short(6, "alpha=1,seed=1"),
    "ho2008/tab5.1-5.4-short.yml": Short(4, "cca=medley,buffer=100p,seed=1"),
    "ho2008/tab5.4-sack.yml": Short(4, "seed=1"),
    "ho2008/tab5.1-5.4-5-short.yml": Short(3, "buffer=250p,seed=1"),
    "ho2008/s4.4.2.yml": Short(3, "buffer=150p,seed=1"),
    "ho2008/thm2.yml": Short(6, "buffer=100p,seed=1"),
    "ho2008/tab5.5-5.8-3-short.yml": Short(3, "cca=medley,buffer=150p,seed=1"),
    "ho2008/tab5.5-5.8-5.yml": Short(3, "cca=medley,buffer=250p,seed=1"),
    "ho2008/tab5.5-5.8-5-real.yml": Short(3, "buffer=1000p,seed=1"),
    "ho2008/tab6.2-6.3.yml": Short(4, "cca=medley,delay=205us,seed=1"),
    "ho2008/tab6.4.yml": Short(20, "cca=medley,seed=1"),
    "ho2008/tab6.3-ssthresh-short.yml": Short(4, "cca=reno,seed=1"),
    "ho2008/tab6.4-ssthresh-short.yml": Short(20, "cca=reno,seed=1"),
    "ho2008/tab6.4-acks-short.yml": Short(20, "cca=perack,seed=1"),
    "ho2008/tab6.2-6.3-cross-short.yml": Short(12, "cca=perack,delay=203us,seed=1"),
    "ho2008/fig5.2-5.4.yml": Short(6, "cca=medley|ctcp,buffer=50p"),
    "afifi2014/fig13-every.yml": Short(20, "cca=ftat,seed=1"),
    "afifi2014/fig13-narrow.yml": Short(20, "cca=ftat,seed=1"),
    "afifi2014/fig13-sack.yml": Short(20, "cca=ftat,seed=1"),
    "afifi2014/fig18-21-short.yml": Short(4, "cca=ftat"),
    "afifi2014/fig18-sack-short.yml": Short(4, "cca=ftat,seed=1"),
    "afifi2014/fig18-sack.yml": Short(4, "cca=ftat,seed=1"),
    "afifi2014/fig18-per-ack.yml": Short(4, "seed=1"),
    "afifi2014/fig23-25.yml": Short(40, "cca=ftat,seed=1"),
    "afifi2014/fig23-sack.yml": Short(40, "cca=ftat,seed=1"),
    "kato2012/claim6.yml": Short(4, "cca=ttfwc2,seed=1"),
    "kato2012/fig5.6-5.8-short.yml": Short(8, "tp=90,seed=1"),
    "kato2012/fig5.6-5.8-64-queue-short.yml": Short(20, "tp=90,seed=1"),
    "kato2012/fig5.6-5.8-64-short.yml": Short(20, "tp=90,seed=1"),
    "kato2012/fig5.6-5.8-64-rises-short.yml": Short(20, "tp=90,seed=1"),
    "kato2012/fig5.6-5.8-rises-short.yml": Short(8, "tp=90,seed=1"),
    "kato2012/fig5.11-5.12-short.yml": Short(8, "cca=ttfwc2,ab=120ms,seed=1"),
    "kato2012/fig5.11-phase-short.yml": Short(8, "cca=ttfwc2,seed=1"),
    "kato2012/fig5.13-5.15-long.yml": Short(8, "tp=90,seed=1"),
    "kato2012/fig5.13-5.15-short.yml": Short(4, "tp=90,rtt=16ms,seed=1"),
    "kato2012/fig5.16-5.18-phase-short.yml": Short(8, "tp=90,seed=1"),
    "kato2012/fig5.16-5.18-short.yml": Short(8, "tp=90,rtt=16ms,seed=1"),
    "afifi2014/fig27-per-ack.yml": Short(20, "seed=1"),
    "afifi2014/fig27-sack.yml": Short(20, ""),
    "kato2012/random-loss-short.yml": Short(8, "tp=90,seed=1"),
    "kato2012/random-loss-rises-short.yml": Short(8, "tp=90,seed=1"),
    "kato2012/slowcc-bdp-short.yml": Short(20, "cca=ttfwc2,x=800ms,seed=1"),
    "kato2012/slowcc-short.yml": Short(30, "cca=ttfwc2,x=800ms"),
    "kato2012/smoothness.yml": Short(8, "tp=90,seed=1"),
    "tokuda2003/fig2-9-10-short.yml": Short(2, "cca=ghighspeed,seed=1"),
    "tokuda2003/fig2-9-10.yml": Short(2, "cca=ghighspeed,seed=1"),
    "tokuda2003/fig3-short.yml": Short(2, "queue=droptail,seed=1"),
    "tokuda2003/fig3-average-short.yml": Short(2, "queue=droptail,seed=1"),
    "tokuda2003/fig6-11-short.yml": Short(2, "cca=ghighspeed,delay=5ms,access=1gbit 12mbit,seed=1"),
    "tokuda2003/fig6-11.yml": Short(2, "cca=ghighspeed,delay=5ms,access=1gbit 12mbit,seed=1"),
    "tokuda2003/fig3.yml": Short(2, "cca=ghighspeed"),
    "tokuda2003/fig9.yml": Short(2, "cca=ghighspeed,n=1"),
    "yu2009/fig2.11-2.13-short.yml": Short(5, "cca=miss,graph=1,rate=10mbit,gap=exponential(500ms)"),
    "yu2009/fig2.14-2.16-short.yml": Short(3, "cca=js,graph=1,rate=10mbit,gap=exponential(500ms),buffer=50p"),
    "yu2009/fig2.3-2.8-whole.yml": Short(40, "cca=js,seed=1"),
    "yu2009/fig2.4-later-short.yml": Short(40, "cca=miss,seed=1"),
    "yu2009/fig2.6-whole.yml": Short(40, "cca=miss,seed=1"),
    "yu2009/fig2.7-held-short.yml": Short(40, "rate=16mbit,room=1,held=1,seed=1"),
    "yu2009/fig2.3-2.8-short.yml": Short(40, "cca=miss,rate=8mbit,seed=1"),
    "yu2009/fig3.5-faster-short.yml": Short(20, "cca=ssipp,count=50,queue=droptail,seed=1"),
    "yu2009/fig3.3-3.8-short.yml": Short(40, "cca=ssipp,queue=droptail,count=50,seed=1"),
    "yu2009/fig4.18-4.19.yml": Short(40, "second=1100ms,seed=1"),
    "yu2009/fig4.30-4.32-short.yml": Short(20, "five=1100ms,seed=1"),
    "yu2009/fig4.34-4.35-whole.yml": Short(20, "cca=spm,rate=25mbit,seed=1"),
    "yu2009/fig4.36-short.yml": Short(20, "cca=spm,seed=1"),
    "yu2009/fig4.37-4.38-short.yml": Short(20, "cca=spm,rate=200mbit,seed=1"),
    "yu2009/fig4.6-4.10-short.yml": Short(40, "kind=poisson,seed=1"),
    "yu2009/tab4.1-starts.yml": Short(40, "cca=spm,rate=25mbit,seed=1"),
    "yu2009/ssipp-single.yml": Short(40, "cca=ssipp,seed=1"),
}


def name_of(file: Path) -> str:
    return str(file.relative_to(lab.ROOT / "experiments"))


def test_every_paper_s_file_has_a_short_form_and_a_source() -> None:
    files = [file for file in EXPERIMENTS if file.parent.name in PAPERS]
    assert sorted(map(name_of, files)) == sorted(SHORT)
    assert [name_of(file) for file in files if not prepare(file).experiment.source] == []


def shortened(text: str, length_s: int) -> str:
    """The file's text with a shorter duration; flows start within its first half, and nothing is claimed of it."""
    data = YAML(typ="safe", pure=True).load(text)  # YAML 1.2, where on and off are words
    factor = length_s / seconds(data["duration"])
    data["duration"] = f"{length_s}s"
    data["warmup"] = f"{round(seconds(data.get('warmup', '0s')) * factor * 1e3)}ms"
    for entry in data.get("traffic", []):  # periods and starts shrink with the run
        for key in ("start", "stop", "on", "off", "gap", "life"):
            if key in entry and "(" not in str(entry[key]):
                entry[key] = f"{max(1, round(seconds(entry[key]) * factor * 1e3))}ms"
    for flow in data.get("flows", []):
        flow["start"] = f"{round(min(seconds(flow.get('start', '0s')), length_s / 2) * 1e3)}ms"
        if "size" in flow:  # what was done in time still is
            flow["size"] = f"{max(1000, round(size_bytes(flow['size']) * factor))}B"
        if "stop" in flow:
            flow["stop"] = f"{round(seconds(flow['stop']) * factor * 1e3)}ms"
    sweep = data.get("sweep") or {}
    ends = [name for name, path in (sweep.get("parameters") or {}).items() if str(path).rstrip("']").endswith(".stop")]
    for row in (*(sweep.get("list") or ()), sweep.get("factorial") or {}):  # what would stop after the end stops at it
        for name in {*ends} & {*row}:
            values = row[name] if isinstance(row[name], list) else [row[name]]
            within = [value if seconds(value) <= length_s else f"{length_s}s" for value in values]
            row[name] = list(dict.fromkeys(within)) if isinstance(row[name], list) else within[0]
    for claims in ("claims", "guards", "expectations", "published"):
        data.pop(claims, None)
    data["repeats"] = 1  # seeds are for claims
    data.get("captures", {}).pop("keep", None)  # other programs read them, too
    return json.dumps(data)


@pytest.mark.parametrize("name", SHORT)
def test_a_short_form_runs_and_is_trusted(kernel: GuestKernel, tmp_path: Path, name: str) -> None:
    short = SHORT[name]
    text = shortened((lab.ROOT / "experiments" / name).read_text(), short.seconds)
    results = kept_results.results(tmp_path, text, "--only", short.only)
    runs = lab.runs(results)
    assert runs
    for run in runs:
        assert run["verdict"]["value"] in ("valid", "suspect"), run["verdict"]
        assert run["metrics"]["goodput_mbps"] is None or run["metrics"]["goodput_mbps"] > 0
        assert run["metrics"]["flows"] or run["metrics"]["applications"]
    wire_tools.agree(results)
