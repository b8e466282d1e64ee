# SPDX-License-Identifier: Apache-2.0
"""Parameters of congestion control algorithms, which are global to a kernel (fidelity rule 7).

Flows that need different values need different names.  A module of kernels/modules may register several: `ttfwc`, `ttfwc2`
and `ttfwc3` are one algorithm whose parameter `tp` is the module's tp, tp2 and tp3.  A file says `tp` under any of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from base.errors import Problem, SpecError
from base.nearest import nearest
from kernels import module_source
from kernels.module_source import ModuleSource
from schema.base import Cca, Scalar
from schema.load import Document, Loc
from schema.names import IN_TREE_CCAS

Use = tuple[Loc, Cca]
"""An algorithm, and where the file says who uses it."""


def module_params(uses: Sequence[Use], document: Document) -> dict[str, dict[str, str]]:
    """Modules that are needed, by name (tcp_medley), with their parameters.

    Raises SpecError for a parameter that the algorithm does not have, and for users that want different values of one.
    """
    modules = module_source.by_name()
    used = [(loc, cca, modules[cca.name]) for loc, cca in uses if cca.name in modules]
    parameters: dict[str, dict[str, str]] = {f"tcp_{module.stem}": {} for _, _, module in used}
    first: dict[str, Cca] = {}
    problems = []
    for loc, cca, module in used:
        values = parameters[f"tcp_{module.stem}"]
        wrong = []
        if first.setdefault(cca.name, cca).params != cca.params:
            wrong.append(f"another flow uses {cca.name} with other parameters; {_remedy(module)}")
        for name, value, problem in _values(cca, module):
            if problem is not None:
                wrong.append(problem)
            elif values.setdefault(name, _text(value)) != _text(value):
                wrong.append(
                    f"another flow has {name} = {values[name]}, which is global to a kernel; {_remedy(module)}"
                )
        problems += [_problem(loc, document, message) for message in wrong[:1]]
    if problems:
        raise SpecError(problems)
    return parameters


def in_tree_params(uses: Sequence[Use], document: Document) -> dict[str, dict[str, str]]:
    """Parameters of the kernel's own algorithms, by name; raises SpecError where different ones are wanted."""
    parameters: dict[str, dict[str, str]] = {}
    first: dict[str, Cca] = {}
    for loc, cca in uses:
        if cca.name not in IN_TREE_CCAS:
            continue
        if first.setdefault(cca.name, cca).params != cca.params:
            message = (
                f"another flow uses {cca.name} with other parameters; they are global to a kernel: "
                "put them into runs of their own, with a sweep"
            )
            raise SpecError([_problem(loc, document, message)])
        if cca.params:
            parameters[cca.name] = {key: _text(value) for key, value in cca.params.items()}
    return parameters


def _problem(loc: Loc, document: Document, message: str) -> Problem:
    place = (*loc, "cca")
    return Problem(document.file, document.line(place), ".".join(map(str, place)), message)


def _values(cca: Cca, module: ModuleSource) -> Iterator[tuple[str, Scalar, str | None]]:
    """Each parameter as the module knows it, its value, and what is wrong with it."""
    number = cca.name.removeprefix(module.stem) if cca.name.startswith(module.stem) else None
    for name, value in cca.params.items():
        several = f"{name}2" in module.parameter_names
        if name not in module.parameter_names:
            yield name, value, f"{cca.name} has no parameter {name!r}; {nearest(name, module.parameter_names)}"
        elif not several or number == "":
            yield name, value, None
        elif number is not None and f"{name}{number}" in module.parameter_names:
            yield f"{name}{number}", value, None
        else:
            yield name, value, f"{cca.name} has no {name} of its own; {_remedy(module)}"


def _remedy(module: ModuleSource) -> str:
    if len(module.names) > 1:
        return f"flows of the same run may use {', '.join(module.names)}, each with its own values"
    return f"{module.stem} has one name only: put the values into runs of their own, with a sweep"


def _text(value: Scalar) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)
