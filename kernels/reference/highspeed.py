# SPDX-License-Identifier: Apache-2.0
"""HighSpeed TCP's response function: Tokuda 2003 eqs 3 and 4, RFC 3649 section 5.

``python -m kernels.reference.highspeed`` prints kernels/modules/cc_highspeed.h, the integer form for the modules.
"""

from __future__ import annotations

import dataclasses
import math

STEPS_PER_OCTAVE = 8
A_BITS, B_BITS = 8, 16


@dataclasses.dataclass(frozen=True)
class Response:
    w_low: float = 31.0
    w_high: float = 83_000.0
    p_high: float = 1e-7
    b_high: float = 0.1
    p_low_given: float | None = None

    @property
    def p_low(self) -> float:
        """Eq 4, unless given (RFC 3649 rounds it to 1e-3)."""
        return 1.5 / self.w_low**2 if self.p_low_given is None else self.p_low_given

    def _share(self, w: float) -> float:
        return (math.log(w) - math.log(self.w_low)) / (math.log(self.w_high) - math.log(self.w_low))

    def b(self, w: float) -> float:
        """Share of the window that a loss costs."""
        if w <= self.w_low:
            return 0.5
        return self._share(min(w, self.w_high)) * (self.b_high - 0.5) + 0.5

    def p(self, w: float) -> float:
        return math.exp(self._share(w) * (math.log(self.p_high) - math.log(self.p_low)) + math.log(self.p_low))

    def a(self, w: float) -> float:
        """Packets per round trip; never less than Reno's one, and constant above w_high."""
        if w <= self.w_low:
            return 1.0
        w = min(w, self.w_high)
        return max(1.0, 2 * w**2 * self.b(w) * self.p(w) / (2 - self.b(w)))


THESIS = Response()
RFC3649 = Response(w_low=38.0, p_low_given=1e-3)


def table(response: Response) -> list[tuple[int, int, int]]:
    """(w, a(w) in 1/256 packet, b(w) in 1/65536) at eight points per octave, the last one at w_high."""
    points = [round(response.w_low)]
    while points[-1] < response.w_high:
        w = response.w_low * 2 ** (len(points) / STEPS_PER_OCTAVE)
        points.append(round(min(w, response.w_high)))
    return [(w, round(response.a(w) * 2**A_BITS), round(response.b(w) * 2**B_BITS)) for w in points]


def header() -> str:
    lines = [
        "/* SPDX-License-Identifier: GPL-2.0-only */",
        "/*",
        " * a(w) and b(w) of HighSpeed TCP (Tokuda 2003 eq 3, RFC 3649 s5), eight points",
        " * per octave, to be interpolated linearly (a(w) is then within 0.4 %",
        " * of the formula).  Made by `python -m kernels.reference.highspeed`; do not edit.",
        " */",
        "#ifndef WARPBED_CC_HIGHSPEED_H",
        "#define WARPBED_CC_HIGHSPEED_H",
        "",
        "#include <linux/types.h>",
        "",
        "struct cc_highspeed_point {",
        "\tu32 w;\t\t/* packets */",
        "\tu32 a;\t\t/* packets per round trip, 24.8 fixed point */",
        "\tu32 b;\t\t/* share lost on a loss, 16.16 fixed point */",
        "};",
    ]
    for name, comment, response in (
        ("w31", "W_low = 31, P_low = 1.5 / 31^2 (Tokuda 2003)", THESIS),
        ("w38", "W_low = 38, P_low = 10^-3 (RFC 3649)", RFC3649),
    ):
        lines += ["", f"/* {comment} */", f"static const struct cc_highspeed_point cc_highspeed_{name}[] = {{"]
        lines += [f"\t{{ {w}, {a}, {b} }}," for w, a, b in table(response)]
        lines.append("};")
    return "\n".join([*lines, "", "#endif /* WARPBED_CC_HIGHSPEED_H */", ""])


if __name__ == "__main__":
    print(header(), end="")
