# SPDX-License-Identifier: Apache-2.0
"""Send a number of bytes over one TCP connection, exactly, and know when the other side has read the last of them.

    python3 -I filetransfer.py send|receive < request.json > result.json

iperf3 cannot: it sends whole blocks and ends when they are in the socket, not when they have arrived. Here the algorithm
is set before the connection opens, the data connection carries the payload and nothing else, and what has to be said is
said on a control connection that opens first: both sides prove that they know the attempt's key (HMAC-SHA-256 over both
sides' random numbers), and the receiver takes data from the announced address and port only. It serves one transfer.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import socket
import struct
import sys
import time
from typing import Any

NONCE_BYTES = 32
CHUNK = memoryview(bytes(1 << 18))
READ_BYTES = 1 << 18
HELLO = struct.Struct("!QH")
COUNT = struct.Struct("!Q")
CONTROL_TIMEOUT_S = 30.0
TCP_USER_TIMEOUT = 18
RATE_OVER_S = 1.0
BYTES_SENT, BYTES_SENT_AT = struct.Struct("=Q"), 200
"""tcpi_bytes_sent in struct tcp_info (include/uapi/linux/tcp.h)."""


class TransferError(Exception):
    """A transfer that did not happen, or not to its end."""


def proof(key: bytes, side: bytes, nonces: bytes, body: bytes = b"") -> bytes:
    return hmac.digest(key, side + nonces + body, hashlib.sha256)


def _exactly(sock: socket.socket, count: int, ends: float | None = None) -> bytes:
    """ends: the moment (time.monotonic) at which all has to be there, else as long as the socket waits for each part"""
    data = bytearray()
    while len(data) < count:
        if ends is not None:
            sock.settimeout(max(0.01, ends - time.monotonic()))
        part = sock.recv(count - len(data))
        if not part:
            raise TransferError("the other side closed its control connection")
        data += part
    return bytes(data)


def receive(own: str, peer: str, port: int, key: bytes, silence_s: float, at_most: int | None = None) -> dict[str, Any]:
    """Serve one transfer from `peer`; connections of others are closed unheard.

    silence_s: longest time without data; at_most: largest size that may be announced
    Returns the bytes read and the seconds from accepting the data connection.
    """
    with socket.create_server((own, port), family=_family(own), backlog=4) as listener:
        control, nonces, size, data_port = _admit(listener, peer, key)
        with control:
            if at_most is not None and size > at_most:
                raise TransferError(f"{size} bytes announced, at most {at_most} are to come")
            listener.settimeout(CONTROL_TIMEOUT_S)
            control.sendall(proof(key, b"receiver", nonces))
            data, address = listener.accept()
            while address[:2] != (peer, data_port):  # IPv6 has four parts
                data.close()
                data, address = listener.accept()
            with data:
                started, total, buffer = time.monotonic(), 0, bytearray(READ_BYTES)
                data.settimeout(silence_s)
                try:
                    while count := data.recv_into(buffer):
                        total += count
                        if total > size:
                            raise TransferError(f"more than the {size} bytes announced have come")
                except TimeoutError as error:
                    raise TransferError(f"no data for {silence_s:g} s, {total} of {size} bytes read") from error
                seconds = time.monotonic() - started
            body = COUNT.pack(total)
            control.sendall(body + proof(key, b"total", nonces, body))
    if total != size:
        raise TransferError(f"{total} of {size} bytes arrived")
    return {"bytes": total, "seconds": seconds}


def _admit(listener: socket.socket, peer: str, key: bytes) -> tuple[socket.socket, bytes, int, int]:
    """The control connection of the sender who knows the key, both random numbers, the size, the data connection's port."""
    while True:
        control, address = listener.accept()
        if address[0] == peer:
            control.settimeout(CONTROL_TIMEOUT_S)
            ends = time.monotonic() + CONTROL_TIMEOUT_S
            try:
                own_nonce = os.urandom(NONCE_BYTES)
                control.sendall(own_nonce)
                nonces = own_nonce + _exactly(control, NONCE_BYTES, ends)
                body = _exactly(control, HELLO.size, ends)
                if hmac.compare_digest(
                    _exactly(control, hashlib.sha256().digest_size, ends), proof(key, b"sender", nonces, body)
                ):
                    size, data_port = HELLO.unpack(body)
                    control.settimeout(CONTROL_TIMEOUT_S)
                    return control, nonces, size, data_port
            except (OSError, TransferError):
                pass
        control.close()


def send(
    own: str,
    peer: str,
    port: int,
    key: bytes,
    cca: str,
    size: int,
    pacing_bps: int | None,
    silence_s: float,
    own_port: int = 0,
    rate_at_most_bps: int | None = None,
) -> dict[str, Any]:
    """Send `size` bytes, from own_port (0: any).

    rate_at_most_bps: payload in a second, what is repeated included, at which the transfer ends
    Returns what was sent, and the seconds from connecting until the other side had read it all.
    Raises TransferError where the other side does not prove itself or the rate is exceeded, and OSError.
    """
    with (
        _socket(own, own_port, cca) as data,
        socket.create_connection((peer, port), CONTROL_TIMEOUT_S, (own, 0)) as control,
    ):
        nonces = _exactly(control, NONCE_BYTES)
        own_nonce = os.urandom(NONCE_BYTES)
        nonces += own_nonce
        body = HELLO.pack(size, data.getsockname()[1])
        control.sendall(own_nonce + body + proof(key, b"sender", nonces, body))
        if not hmac.compare_digest(_exactly(control, hashlib.sha256().digest_size), proof(key, b"receiver", nonces)):
            raise TransferError("the receiver does not know the key of this attempt")
        if pacing_bps is not None:
            data.setsockopt(
                socket.SOL_SOCKET,
                socket.SO_MAX_PACING_RATE if hasattr(socket, "SO_MAX_PACING_RATE") else 47,
                struct.pack("=Q", pacing_bps // 8),
            )
        data.setsockopt(socket.IPPROTO_TCP, TCP_USER_TIMEOUT, int(silence_s * 1000))
        data.settimeout(silence_s)
        started = time.monotonic()
        data.connect((peer, port))
        algorithm = data.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0").decode()
        sent, rate = 0, Rate(rate_at_most_bps, started)
        while sent < size:
            sent += data.send(CHUNK[: size - sent])
            rate.check(data, sent)
        data.shutdown(socket.SHUT_WR)
        if data.recv(1):
            raise TransferError("the receiver sent data where none belongs")
        seconds = time.monotonic() - started
        answer = _exactly(control, COUNT.size + hashlib.sha256().digest_size)
        count, seal = answer[: COUNT.size], answer[COUNT.size :]
        if not hmac.compare_digest(seal, proof(key, b"total", nonces, count)) or COUNT.unpack(count)[0] != size:
            raise TransferError(f"the receiver has read {COUNT.unpack(count)[0]} of {size} bytes")
    return {"bytes": sent, "seconds": seconds, "cca": algorithm}


class Rate:
    """Ends a transfer whose mean rate over a second is too high. Nothing is slowed down: the algorithm sends as it would."""

    def __init__(self, at_most_bps: int | None, now_s: float) -> None:
        self._at_most_bps, self._since_s, self._bytes = at_most_bps, now_s, 0

    def check(self, sock: socket.socket, written: int) -> None:
        """Raise TransferError where too much was sent since the last second's end. written: bytes given to the socket so far"""
        now_s = time.monotonic()
        passed_s = now_s - self._since_s
        if self._at_most_bps is None or passed_s < RATE_OVER_S:
            return
        sent = sent_bytes(sock) or written
        bps = (sent - self._bytes) * 8 / passed_s
        if bps > self._at_most_bps:
            raise TransferError(
                f"{bps / 1e6:.0f} Mbit/s sent over {passed_s:.1f} s, more than the {self._at_most_bps / 1e6:g} Mbit/s of "
                "limits.rate_at_most; the campaign file can set more"
            )
        self._since_s, self._bytes = now_s, sent


def sent_bytes(sock: socket.socket) -> int:
    """Payload that the kernel has sent, what was repeated included; 0 before Linux 4.19, which does not count it."""
    info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, BYTES_SENT.size + BYTES_SENT_AT)
    return int(BYTES_SENT.unpack_from(info, BYTES_SENT_AT)[0]) if len(info) >= BYTES_SENT_AT + BYTES_SENT.size else 0


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def _socket(own: str, own_port: int, cca: str) -> socket.socket:
    sock = socket.socket(_family(own), socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, cca.encode())
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.bind((own, own_port))
    except OSError as error:
        sock.close()
        raise TransferError(f"{cca} from {own}: {error.strerror}") from error
    return sock


def main(side: str) -> int:
    """Serve the request on standard input; the result, or {"error": …}, goes to standard output."""
    request = json.loads(sys.stdin.read())
    request["key"] = bytes.fromhex(request["key"])
    try:
        result = send(**request) if side == "send" else receive(**request)
    except (TransferError, OSError) as error:
        print(json.dumps({"error": str(error)}))
        return 1
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
