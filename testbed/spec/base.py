# SPDX-License-Identifier: Apache-2.0
"""What all parts of the experiment schema are made of: strict models, and texts that are quantities or names."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from testbed import quantities

Scalar = str | int | float | bool


def _quantity(parse: Any) -> AfterValidator:
    def check(text: str) -> str:
        parse(text)
        return text

    return AfterValidator(check)


Time = Annotated[str, _quantity(quantities.delay_ns)]
Size = Annotated[str, _quantity(quantities.size_bytes)]
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,39}$")]
NodeName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,8}$")]
SysctlName = Annotated[str, Field(pattern=r"^net(\.[A-Za-z0-9_/-]+)+$")]
SysctlValue = Annotated[str | int, Field(union_mode="left_to_right")]
ParamName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]


class Model(BaseModel):
    """A part of the file: unknown keys are refused, values are not converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
