# SPDX-License-Identifier: Apache-2.0
"""Types that all parts of the schema of experiment files share."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from base import quantities
from base.nearest import nearest
from kernels import bpf_objects
from kernels import series as kernel_series
from schema import patterns
from schema.names import algorithms, bpf_ccas


def checked(parse: Callable[[str], object]) -> AfterValidator:
    """A text that stays as it is once `parse` has taken it."""

    def check(text: str) -> str:
        parse(text)
        return text

    return AfterValidator(check)


Scalar = str | int | float | bool
Time = Annotated[str, Field(description="such as 48ms, at most 8784h"), checked(quantities.delay_ns)]
Size = Annotated[str, Field(description="such as 64KB, at most 1000000GB"), checked(quantities.size_bytes)]
Rate = Annotated[str, Field(description="such as 50mbit, at most 10000gbit"), checked(quantities.rate_bps)]
Name = Annotated[str, Field(pattern=patterns.NAME)]
NodeName = Annotated[str, Field(pattern=patterns.NODE)]
SysctlName = Annotated[str, Field(pattern=patterns.SYSCTL)]
SysctlValue = Annotated[str | int, Field(union_mode="left_to_right")]
ParamName = Annotated[str, Field(pattern=patterns.PARAM)]


def _no_path(value: Any) -> Any:
    """A tree or tarball is no series; its build has no name that other machines know."""
    if isinstance(value, str) and ("/" in value or ".tar" in value):
        raise ValueError(
            f"{value!r}: a file names a series ({', '.join(kernel_series.NAMES)}); a tree or tarball is built by ./warpbed build-kernels "
            "--source PATH, and WARPBED_TEST_KERNEL=FOLDER, with the folder of that build, runs a file of one kernel on it"
        )
    return value


if TYPE_CHECKING:
    KernelSeries = str
else:
    KernelSeries = Annotated[Literal["default", *kernel_series.NAMES], BeforeValidator(_no_path)]


class Model(BaseModel):
    """A part of the file: unknown keys are refused, values are not converted."""

    # defer_build: each is compiled with the model that holds it, instead of by itself as well
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


_PARAM_VALUE = re.compile(r"[A-Za-z0-9._+-]{1,64}")
"""The kernel takes what follows a blank for another parameter."""


def check_algorithm(name: str, bpf: str | None) -> None:
    """Raise ValueError for a name that stands for no algorithm, or for a file that cannot hold one of that name.

    bpf: the object or source of an algorithm of the user's own; None for those of the kernel and of the project
    """
    known = sorted({*algorithms(), *bpf_ccas()})
    if bpf is None:
        if name not in known:
            raise ValueError(f"there is no algorithm {name!r}; {nearest(name, known)}")
        return
    if name in known:
        raise ValueError(
            f"{name!r} is an algorithm of the kernel's or the project's; an object of yours has another name"
        )
    if not bpf_objects.NAME.fullmatch(name):
        raise ValueError(f"{name!r}: a name has at most 15 small letters, digits and _, and begins with a letter")
    if not bpf.endswith((bpf_objects.SOURCE_END, bpf_objects.OBJECT_END)):
        raise ValueError(f"bpf: {bpf!r} is neither a source (.bpf.c) nor an object (.o)")


class Cca(Model):
    """A congestion control algorithm with parameters (its kernel module's).

    bpf: the object or source of an algorithm that is a BPF program, beside the experiment file; those of the project need none
    """

    name: str
    params: dict[ParamName, Scalar] = {}
    bpf: Annotated[str, Field(min_length=1, max_length=500)] | None = None

    @model_validator(mode="after")
    def _known(self) -> Cca:
        check_algorithm(self.name, self.bpf)
        if self.params and (self.bpf is not None or self.name in bpf_ccas()):
            raise ValueError(f"{self.name} is a BPF program, which takes no params; write the value into its source")
        for name, value in self.params.items():
            if isinstance(value, str) and not _PARAM_VALUE.fullmatch(value):
                raise ValueError(f"params.{name}: {value!r}: a parameter is one number or one word, without blanks")
        return self


def _window(text: str) -> None:
    if quantities.size_bytes(text) > MAX_WINDOW_BYTES:
        raise ValueError(f"{text!r}: a window has at most {MAX_WINDOW_BYTES} bytes")


MAX_WINDOW_BYTES = 1 << 30
"""What a TCP header can announce (RFC 7323)."""
Packets = Annotated[int, Field(ge=1, le=1_000_000)] | Literal["none"] | Annotated[str, checked(_window)]


class StartValues(Model):
    """How the connections of an entry begin: in packets, or a size that is as many as fit into it.

    Left out, or none, they are the kernel's (10, none, none), or what the algorithm itself says.
    """

    initial_window: Packets | None = None
    initial_ssthresh: Packets | None = None
    max_window: Packets | None = None


def with_short_cca(data: Any) -> Any:
    """`cca: reno` is short for `cca: {name: reno}`."""
    short = isinstance(data, dict) and isinstance(data.get("cca"), str)
    return {**data, "cca": {"name": data["cca"]}} if short else data
