# SPDX-License-Identifier: Apache-2.0
"""Where the project's packages are, and the checkout that runs need.

From a checkout (`./warpbed exec`, or pip install --editable) the packages are those of the checkout. A wheel brings copies of
them in a folder of its own. Either way they are appended to the import path under their plain names.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]
PARTS = HERE / "_parts"
"""Where a wheel has the packages."""
CHECKOUT_VARIABLE = "WARPBED_CHECKOUT"


def packages() -> Path:
    """The folder that the project's packages lie in."""
    return CHECKOUT if (CHECKOUT / "base/layers.py").is_file() else PARTS


def make_importable() -> None:
    """Put the project's packages on the import path; raises ImportError where a name of theirs is taken by another package."""
    root = packages()
    if str(root) not in sys.path:
        sys.path.append(str(root))
    _check(root, "base")
    from base.layers import RUN_PACKAGES

    for name in RUN_PACKAGES:
        _check(root, name)


def _check(root: Path, name: str) -> None:
    """Raise ImportError where a package of this name is not the project's."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None or not Path(spec.origin).resolve().is_relative_to(root):
        place = "missing" if spec is None else f"found at {spec.origin}"
        raise ImportError(
            f"warpbed needs its own package {name!r} of {root}, but it is {place}; "
            f"rename your module, or start Python in another folder"
        )


def checkout() -> Path:
    """The checkout whose `./warpbed` makes runs: $WARPBED_CHECKOUT, else the one that this package lies in.

    Raises UsageError where there is none.
    """
    from base.errors import UsageError

    named = os.environ.get(CHECKOUT_VARIABLE)
    root = Path(named).absolute() if named else CHECKOUT
    if (root / "warpbed").is_file() and (root / "playbooks").is_dir():
        return root
    where = f"{CHECKOUT_VARIABLE}={named}" if named else "warpbed was installed without its checkout"
    raise UsageError(
        f"{where}: no checkout is there, and kernels are built and runs made from one; "
        f"clone the repository and set {CHECKOUT_VARIABLE} to it, or install with pip install --editable; "
        "results that exist can be loaded without"
    )


make_importable()
