# SPDX-License-Identifier: Apache-2.0
"""`./warpbed dashboards`: TimescaleDB and Grafana on this machine by playbooks/dashboards.yml, or a Grafana of the user's own."""

from __future__ import annotations

import argparse
import os
import subprocess
from pathlib import Path

from base.errors import UsageError
from base.paths import ROOT
from testbed import ansible, grafana

HELP = "start or stop the database and Grafana with all results"
PORTS = range(1024, 65536)


def arguments(command: argparse.ArgumentParser) -> None:
    sub = command.add_subparsers(dest="action", required=True, metavar="ACTION")
    up = sub.add_parser("up", help="start both, load the results, print the address", allow_abbrev=False)
    up.add_argument(
        "--results", type=Path, default=ROOT / "results", metavar="DIR", help="results to load (default: results/)"
    )
    up.add_argument("--port", type=int, default=3000, metavar="N", help="Grafana's port on 127.0.0.1 (default: 3000)")
    up.add_argument("--database-port", type=int, default=15432, metavar="N", help="the database's (default: 15432)")
    up.add_argument("--database-only", action="store_true", help="no Grafana")
    up.add_argument(
        "--local-image", action="store_true", help="a database image built here from Debian's packages (needs root)"
    )
    down = sub.add_parser("down", help="stop both; data and passwords stay", allow_abbrev=False)
    down.add_argument("--purge", action="store_true", help="remove data and passwords as well")
    provision = sub.add_parser(
        "provision", help="give the dashboards and the store to a Grafana of your own", allow_abbrev=False
    )
    provision.add_argument(
        "--to", type=Path, required=True, metavar="FOLDER", help="its provisioning folder (/etc/grafana/provisioning)"
    )
    provision.add_argument(
        "--alerts", action="store_true", help="its alert rules too (without it, they are taken away)"
    )
    provision.add_argument(
        "--public",
        type=Path,
        metavar="FOLDER",
        help="its folder public (/usr/share/grafana/public): the experiments' reports are put there, and the dashboards link to them",
    )
    provision.add_argument(
        "--results", type=Path, default=ROOT / "results", metavar="DIR", help="whose reports (default: results/)"
    )
    shown = sub.add_parser("open", help="print a run's address in Grafana, and open it", allow_abbrev=False)
    shown.add_argument("run", type=Path, metavar="RUN", help="a run's folder, results/EXPERIMENT/RUN")
    shown.add_argument(
        "--url", metavar="URL", help="the Grafana's address (default: that of ./warpbed dashboards up on this machine)"
    )


def main(options: argparse.Namespace) -> int:
    if options.action == "down":
        return ansible.play("dashboards.yml", {"dashboards_state": "down", "dashboards_purge": options.purge})
    if options.action == "provision":
        print(
            "\n".join(
                grafana.provision(options.to, alerts=options.alerts, public=options.public, results=options.results)
            )
        )
        return 0
    if options.action == "open":
        return _open(grafana.address(options.run, options.url))
    return _up(options)


def _up(options: argparse.Namespace) -> int:
    for name, port in (("--port", options.port), ("--database-port", options.database_port)):
        if port not in PORTS:
            raise UsageError(f"{name} {port}: a number from {PORTS.start} to {PORTS.stop - 1}")
    if options.port == options.database_port:
        raise UsageError(f"--port and --database-port are both {options.port}; they have to differ")
    variables: dict[str, object] = {
        "dashboards_results": str(options.results.resolve()),
        "dashboards_grafana_port": options.port,
        "dashboards_database_port": options.database_port,
        "dashboards_grafana": not options.database_only,
    }
    if options.local_image:
        variables["dashboards_local_image"] = "always"
    return ansible.play("dashboards.yml", variables)


def _open(address: str) -> int:
    """Print the address; where there is a screen, the desktop's browser opens it."""
    print(address)
    if os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        try:
            subprocess.run(["xdg-open", address], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        except OSError:
            pass  # the address stands there
    return 0
