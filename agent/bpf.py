# SPDX-License-Identifier: Apache-2.0
"""Congestion controls that are BPF programs (struct_ops): registered with the kernel for a run, by libbpf, and taken back after it.

libbpf (its first version's interface) is there wherever iproute2 is. It finds the places of the kernel's structures by itself (CO-RE), so
that one object fits every kernel that describes itself (CONFIG_DEBUG_INFO_BTF) and translates programs (CONFIG_BPF_JIT).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from agent import left_behind
from agent.errors import RunError
from agent.left_behind import LIBRARY
from plan.model import BpfObject

KERNELS_OWN = Path("/sys/kernel/btf/vmlinux")
AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
STRUCT_OPS = 26
"""BPF_MAP_TYPE_STRUCT_OPS (linux/bpf.h)."""
LIBBPFS_OWN = 4000
"""Numbers from here on are libbpf's, and its words say the same."""
WORDS = 4000
"""Of what libbpf says, the last characters: the reason stands at the end."""
_Print = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)


class _Libbpf:
    """The functions that are used, and what the library has said."""

    def __init__(self) -> None:
        try:
            self._functions = ctypes.CDLL(LIBRARY, use_errno=True)
        except OSError as error:
            raise RunError("bpf", LIBRARY, f"{error}; install libbpf1, which iproute2 brings") from error
        self._said: list[str] = []
        self._format = ctypes.CDLL(None).vsnprintf
        self._format.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_void_p]
        self._listen = _Print(self._heard)  # kept: the library calls it later
        self._functions.libbpf_set_print(self._listen)

    def _heard(self, level: int, form: bytes, arguments: int) -> int:
        text = ctypes.create_string_buffer(1 << 16)
        length: int = self._format(text, len(text), form, arguments)
        if level < 2:  # a warning, or news; the rest is for those who write libbpf
            self._said.append(text.value.decode(errors="replace"))
        return length

    @property
    def words(self) -> str:
        return "".join(self._said)[-WORDS:].strip()

    def pointer(self, name: str, *arguments: object) -> int | None:
        """A function's pointer; None where it failed and errno says why."""
        function = self._functions[name]
        function.restype = ctypes.c_void_p
        found: int | None = function(*arguments)
        return found

    def number(self, name: str, *arguments: object) -> int:
        function = self._functions[name]
        function.restype = ctypes.c_int
        result: int = function(*arguments)
        return result


@contextlib.contextmanager
def registered(objects: Iterable[BpfObject]) -> Iterator[None]:
    """The algorithms of these objects, for as long as the context lasts.

    Raises RunError with libbpf's and the verifier's words.
    """
    objects = list(objects)
    if not objects:
        yield
        return
    if not KERNELS_OWN.exists():
        raise RunError("bpf", objects[0].cca, "this kernel does not describe itself: CONFIG_DEBUG_INFO_BTF is missing")
    library = _Libbpf()
    with contextlib.ExitStack() as stack:
        for one in objects:
            stack.enter_context(_registered(library, one))
        yield


@contextlib.contextmanager
def _registered(library: _Libbpf, one: BpfObject) -> Iterator[None]:
    opened = library.pointer("bpf_object__open_file", os.fsencode(one.path), None)
    if opened is None:
        raise _failed(library, one, f"{one.path} is no BPF object")
    handle, link = ctypes.c_void_p(opened), None
    try:
        if library.number("bpf_object__load", handle):
            raise _failed(library, one, "the kernel does not take it")
        link = _attached(library, handle, one)
        yield
    finally:
        if link is not None:
            library.number("bpf_link__destroy", link)
        library.pointer("bpf_object__close", handle)


def _attached(library: _Libbpf, handle: ctypes.c_void_p, one: BpfObject) -> ctypes.c_void_p:
    """Register that one of the object's struct_ops which has the algorithm's name.

    Others may be in the object: the kernel's own bpf_dctcp has one that is no whole algorithm.
    """
    wrong: RunError | None = None
    entry = library.pointer("bpf_object__next_map", handle, None)
    while entry is not None:
        one_map = ctypes.c_void_p(entry)
        if library.number("bpf_map__type", one_map) == STRUCT_OPS:
            left_behind.note_map(library.number("bpf_map__fd", one_map))
            made = library.pointer("bpf_map__attach_struct_ops", one_map)
            if made is None:
                wrong = wrong or _failed(library, one, "it cannot be registered")
            else:
                link = ctypes.c_void_p(made)
                if one.cca in AVAILABLE.read_text().split():
                    return link
                library.number("bpf_link__destroy", link)
                wrong = RunError(
                    "bpf", one.cca, f"{one.path} registers another name; an algorithm is called as its .name is"
                )
        entry = library.pointer("bpf_object__next_map", handle, one_map)
    raise wrong or RunError(
        "bpf", one.cca, f"{one.path} has no struct_ops; an algorithm is a struct tcp_congestion_ops in .struct_ops"
    )


def _failed(library: _Libbpf, one: BpfObject, what: str) -> RunError:
    number = ctypes.get_errno()
    reason = f": {os.strerror(number)}" if 0 < number < LIBBPFS_OWN else ""
    return RunError("bpf", one.cca, f"{what}{reason}\n{library.words}".strip())
