# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of an experiment file: numbers, names, + - * / **, and a few functions; nothing else can be said.

The text is parsed by Python's own parser and walked here; it is never evaluated as Python.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping

MAX_NODES = 200
_TWO: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: math.pow,
}
_ONE: Mapping[type[ast.unaryop], Callable[[float], float]] = {ast.USub: operator.neg, ast.UAdd: operator.pos}
_FUNCTIONS: Mapping[str, tuple[Callable[..., float], int, int]] = {
    "sqrt": (math.sqrt, 1, 1),
    "log": (math.log, 1, 1),
    "log2": (math.log2, 1, 1),
    "exp": (math.exp, 1, 1),
    "min": (min, 1, 20),
    "max": (max, 1, 20),
}
FUNCTIONS = tuple(_FUNCTIONS)


class FormulaError(ValueError):
    """A formula cannot be read, or has no value."""


def names_in(text: str) -> tuple[str, ...]:
    """The names of a formula's quantities, each once; raises FormulaError where it is none."""
    tree = _parsed(text)
    functions = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    names = (node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in functions)
    return tuple(dict.fromkeys(names))


def value(text: str, names: Mapping[str, float]) -> float:
    """The formula's value for these quantities, a finite number; raises FormulaError."""
    try:
        result = _value(_parsed(text).body, names)
    except (ZeroDivisionError, OverflowError, ValueError) as error:
        raise error if isinstance(error, FormulaError) else FormulaError(f"no value: {error}") from error
    if not math.isfinite(result):
        raise FormulaError("no finite value")
    return result


def _parsed(text: str) -> ast.Expression:
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise FormulaError("not an arithmetic expression") from error
    for count, node in enumerate(ast.walk(tree)):
        if count >= MAX_NODES:
            raise FormulaError(f"more than {MAX_NODES} numbers, names and signs")
        _check(node)
    return tree


def _check(node: ast.AST) -> None:
    if isinstance(node, ast.Expression | ast.Name | ast.Load | ast.operator | ast.unaryop):
        good = not isinstance(node, ast.operator) or type(node) in _TWO
        good = good and (not isinstance(node, ast.unaryop) or type(node) in _ONE)
    elif isinstance(node, ast.Constant):
        good = isinstance(node.value, int | float) and not isinstance(node.value, bool)
    elif isinstance(node, ast.Call):
        good = isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS and not node.keywords
        if good and isinstance(node.func, ast.Name):
            _, least, most = _FUNCTIONS[node.func.id]
            good = least <= len(node.args) <= most
    else:
        good = isinstance(node, ast.BinOp | ast.UnaryOp)
    if not good:
        shown = ast.unparse(node) if isinstance(node, ast.expr) else type(node).__name__
        raise FormulaError(f"{shown}: write numbers, parameters, + - * / ** and {', '.join(FUNCTIONS)}")


def _value(node: ast.expr, names: Mapping[str, float]) -> float:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return float(node.value)
    if isinstance(node, ast.Name):
        if node.id not in names:
            raise FormulaError(f"{node.id} has no number; there are {', '.join(names) or 'none'}")
        return names[node.id]
    if isinstance(node, ast.BinOp):
        return _TWO[type(node.op)](_value(node.left, names), _value(node.right, names))
    if isinstance(node, ast.UnaryOp):
        return _ONE[type(node.op)](_value(node.operand, names))
    assert isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    return _FUNCTIONS[node.func.id][0](*(_value(argument, names) for argument in node.args))
