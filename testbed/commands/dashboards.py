# SPDX-License-Identifier: Apache-2.0
"""`./warpbed dashboards up|down`: TimescaleDB and Grafana on this machine, by playbooks/dashboards.yml."""

from __future__ import annotations

import argparse
from pathlib import Path

from base.errors import UsageError
from base.paths import ROOT
from testbed import ansible

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


def main(options: argparse.Namespace) -> int:
    if options.action == "down":
        return ansible.play("dashboards.yml", {"dashboards_state": "down", "dashboards_purge": options.purge})
    for name, port in (("--port", options.port), ("--database-port", options.database_port)):
        if port not in PORTS:
            raise UsageError(f"{name} {port}: a number from {PORTS.start} to {PORTS.stop - 1}")
    if options.port == options.database_port:
        raise UsageError(f"--port and --database-port are both {options.port}; they have to differ")
    variables: dict[str, object] = {
        "dashboards_results": str(options.results.resolve()), "dashboards_grafana_port": options.port,
        "dashboards_database_port": options.database_port, "dashboards_grafana": not options.database_only,
    }  # fmt: skip
    if options.local_image:
        variables["dashboards_local_image"] = "always"
    return ansible.play("dashboards.yml", variables)
