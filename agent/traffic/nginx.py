# SPDX-License-Identifier: Apache-2.0
"""The server of web and video: Debian's nginx with one file, of which clients ask for as much as they want."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from agent.errors import RunError
from agent.traffic.control import Control
from agent.traffic.family import family_of
from agent.traffic.http import PATH
from base.linux import die_with_parent
from plan.model import TrafficPlan

START_TIMEOUT_S = 10.0
LOOK_S = 0.01

CONFIG = """\
daemon off; master_process off; worker_processes 1; pid {folder}/nginx.pid; error_log stderr warn;
events {{ worker_connections 4096; }}
http {{
  log_format main "$status $body_bytes_sent $request_time";
  access_log {folder}/access.log main buffer=64k;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  sendfile on; tcp_nopush off; tcp_nodelay on; keepalive_timeout 1h; keepalive_requests 10000000; send_timeout 1h;
  server {{ {listen} root {folder}/files; }}
}}
"""


def serve(plan: TrafficPlan, addresses: dict[str, str], control: Control) -> dict[str, Any]:
    """Run nginx until the control file ends."""
    with tempfile.TemporaryDirectory(prefix="warpbed-nginx-") as name:
        folder = Path(name)
        (folder / "files").mkdir()
        # nginx started by root serves as another user
        folder.chmod(0o755)
        (folder / "files").chmod(0o755)
        with open(folder / "files" / PATH.lstrip("/"), "wb") as file:
            file.truncate(plan.settings["blob_bytes"])
        listen = f"listen {plan.port} backlog=4096;"
        if family_of(addresses) == socket.AF_INET6:
            listen += f" listen [::]:{plan.port} backlog=4096;"
        (folder / "nginx.conf").write_text(CONFIG.format(folder=folder, listen=listen))
        return _run(plan, folder, control)


def _run(plan: TrafficPlan, folder: Path, control: Control) -> dict[str, Any]:
    program = shutil.which("nginx", path="/usr/sbin:/usr/bin:/sbin:/bin")
    if program is None:
        raise RunError("traffic", plan.name, "there is no nginx on this host; apt-get install nginx")
    with open(folder / "words", "w+") as output:
        process = subprocess.Popen(
            [program, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", "stderr"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            preexec_fn=die_with_parent,
        )
        try:
            _wait_listening(plan, process, folder)
            control.ready()
            while not control.ended:
                control.receive()
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()
    log = folder / "access.log"
    rows = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
    return {
        "requests": len(rows),
        "failed_requests": sum(row[0] != "206" for row in rows),
        "sent_bytes": sum(int(row[1]) for row in rows),
    }


def _wait_listening(plan: TrafficPlan, process: subprocess.Popen[bytes], folder: Path) -> None:
    end_s = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < end_s and process.poll() is None:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
            if sock.connect_ex(("127.0.0.1", plan.port)) == 0:
                return
        time.sleep(LOOK_S)
    last_lines = " / ".join((folder / "words").read_text().splitlines()[-3:])
    raise RunError(
        "traffic", plan.name, f"nginx does not answer on port {plan.port}: {last_lines or 'it said nothing'}"
    )
