# SPDX-License-Identifier: Apache-2.0
"""Links of the virtual host with one event per packet, by its kernel (kernels/modules/um_link.c)."""

from __future__ import annotations

from agent.errors import RunError


def straight(source: str, target: str) -> None:
    """Let what would reach an interface of the current namespace be sent by another one, without a hand-over in between.

    Raises RunError where the kernel refuses.
    """
    try:
        with open("/sys/module/um_link/parameters/link", "wb", buffering=0) as file:
            file.write(f"{source} {target}".encode())
    except OSError as error:
        raise RunError("network", source, f"um_link: {error.strerror}; virtual.links: chain does without") from error
