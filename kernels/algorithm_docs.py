# SPDX-License-Identifier: Apache-2.0
"""The pages of docs/algorithms, generated from the modules: headers, parameters, tests, experiments, and what was measured
(docs/algorithms/measured).

python -m kernels.algorithm_docs            writes them
python -m kernels.algorithm_docs --check    exit code 1 where one is out of date
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from base.errors import UsageError, WarpbedError
from base.paths import ROOT
from kernels import module_source
from kernels.module_source import Parameter

MADE = "<!-- SPDX-License-Identifier: Apache-2.0 -->\n<!-- Made by python -m kernels.algorithm_docs; change the sources. -->\n"
DIFFERENCES = "Differences from the paper"
READINGS = "Readings"

IN_TREE = {
    "reno": "Reno / NewReno, RFC 5681 and 6582; without SACK (`net.ipv4.tcp_sack: 0`) it is what papers call NewReno",
    "cubic": "CUBIC, RFC 9438",
    "bic": "BIC, Xu et al. 2004",
    "westwood": "**Westwood+**, Grieco and Mascolo 2004 (the bandwidth is sampled once per RTT), not the first Westwood",
    "highspeed": "HighSpeed TCP, RFC 3649",
    "hybla": "Hybla, Caini and Firrincieli 2004",
    "htcp": "H-TCP, Leith and Shorten 2004",
    "vegas": "Vegas, Brakmo and Peterson 1995",
    "veno": "Veno, Fu and Liew 2003",
    "scalable": "Scalable TCP, Kelly 2003",
    "lp": "TCP-LP, Kuzmanovic and Knightly 2003",
    "yeah": "YeAH, Baiocchi et al. 2007",
    "illinois": "Illinois, Liu et al. 2006",
    "bbr": "BBR version 1, Cardwell et al. 2016",
    "cdg": "CAIA delay gradient, Hayes and Armitage 2011",
    "nv": "New Vegas, Brakmo 2010",
    "dctcp": "DCTCP, RFC 8257; towards a host whose default it is not, the kernel makes it Reno (`dctcp-reno`)",
}


@dataclass(frozen=True)
class Algorithm:
    """What a module's source says."""

    module: str  # without tcp_
    names: tuple[str, ...]  # that it registers
    title: str
    idea: tuple[str, ...]
    paper: tuple[str, ...]
    differences: tuple[str, ...]
    readings: tuple[str, ...]  # where the paper can be read in more than one way
    arithmetic: tuple[str, ...]
    parameters: tuple[Parameter, ...]


def blocks_of(comment: str) -> list[list[str]]:
    """The paragraphs of a header comment, without its stars."""
    lines = [re.sub(r"^ \*(/| )?", "", line.expandtabs(8)).rstrip() for line in comment.splitlines()[1:]]
    blocks: list[list[str]] = [[]]
    for line in lines:
        if line:
            blocks[-1].append(line)
        elif blocks[-1]:
            blocks.append([])
    return [block for block in blocks if block]


def parse(source: Path) -> Algorithm:
    """A module's source.

    Raises UsageError, with the file, where the header has not the parts that each module's has.
    """
    text = source.read_text()
    match = re.search(r"^/\*\n.*?^ \*/", text, re.MULTILINE | re.DOTALL)
    blocks = blocks_of(match[0]) if match else []
    at = [i for i, block in enumerate(blocks) if block[0].strip() == DIFFERENCES]
    module = module_source.read(source)
    if len(at) != 1 or at[0] < 2 or len(blocks[0]) != 1 or not module.registered:
        raise UsageError(
            f"{source}: its header needs a title of one line, the idea, the paper, and the part {DIFFERENCES!r}; "
            "kernels/template/module.c.in shows them"
        )
    after = blocks[at[0] + 1 :]
    return Algorithm(
        module=module.stem,
        names=module.registered,
        title=blocks[0][0],
        idea=tuple(blocks[1]),
        paper=tuple("\n".join(block) for block in blocks[2 : at[0]]),
        differences=tuple(blocks[at[0]][1:]),
        readings=tuple(line for block in after if block[0] == READINGS for line in block[1:]),
        arithmetic=tuple("\n".join(block) for block in after if block[0] != READINGS),
        parameters=module.parameters,
    )


def markdown(lines: list[str]) -> str:
    """A block of a header: prose as it is, lists as lists, indented lines as they are set."""
    runs: list[tuple[str, list[str]]] = []
    for line in lines:
        last = runs[-1][0] if runs else ""
        if line.lstrip().startswith("- "):
            kind, text = "list", "- " + _plain(line.lstrip().removeprefix("- "))
        elif last == "list" and line.startswith("   "):
            kind, text = "list", "  " + _plain(line.strip())
        elif line.startswith("  "):
            kind, text = "code", line.removeprefix("  ")
        else:
            kind, text = "prose", _plain(line)
        if kind != last:
            runs.append((kind, []))
        runs[-1][1].append(text)
    fences = {"code": "```\n{}\n```"}
    return "\n\n".join(fences.get(kind, "{}").replace("{}", "\n".join(texts)) for kind, texts in runs)


def _plain(text: str) -> str:
    """Prose in which Markdown's own signs mean nothing."""
    return re.sub(r"([*_<|])", r"\\\1", text).replace(".  ", ". ")


@dataclass(frozen=True)
class Test:
    """A test function: its name as a sentence, and the first line of its docstring."""

    claim: str
    words: str


def tests_of(file: Path) -> list[Test]:
    tests = []
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            claim = node.name.removeprefix("test_").replace("_s_", "'s ").replace("_", " ")
            tests.append(Test(claim, (ast.get_docstring(node) or "").partition("\n")[0]))
    return tests


def test_files(module: str, root: Path) -> list[Path]:
    """Files that test the algorithm: those named after it, and those of its specification's family that name it."""
    files = []
    for file in sorted((root / "tests/kernels").glob("test_*.py")):
        named = file.stem in (f"test_spec_{module}", f"test_{module}")
        family = file.stem.startswith("test_spec_") and re.search(rf'"{module}"', file.read_text())
        if named or family:
            files.append(file)
    return files


def experiments_of(names: tuple[str, ...], root: Path) -> list[Path]:
    """Experiment files that name the algorithm outside of comments."""
    word = re.compile(rf"(?<![\w.-])({'|'.join(map(re.escape, names))})(?![\w-])")
    files = []
    for file in sorted((root / "experiments").rglob("*.yml")):
        lines = [re.sub(r"(^|\s)#.*", "", line) for line in file.read_text().splitlines()]
        if any(word.search(line) for line in lines if re.search(r"cca|\[|\{", line)):
            files.append(file)
    return files


def main_name(algorithm: Algorithm) -> str:
    """The name that the file has, where it registers it."""
    return algorithm.module if algorithm.module in algorithm.names else algorithm.names[0]


def page(algorithm: Algorithm, root: Path) -> str:
    """One algorithm's page."""
    a = algorithm
    names = ", ".join(f"`{name}`" for name in a.names)
    spec = root / f"kernels/reference/{a.module}.py"
    parts = [
        MADE + f"# {_plain(a.title)}",
        f"`cca: {main_name(a)}`" + (f" (this module registers {names})" if len(a.names) > 1 else ""),
        "## Idea",
        markdown(list(a.idea)),
        "## Paper and equations",
        *(markdown(block.splitlines()) for block in a.paper),
        "## Parameters",
        _parameters(a, root),
        f"## {DIFFERENCES}",
        markdown(list(a.differences)),
    ]
    if a.readings:
        parts += [f"## {READINGS}", markdown(list(a.readings))]
    if a.arithmetic:
        parts += ["## Arithmetic", *(markdown(block.splitlines()) for block in a.arithmetic)]
    parts += ["## What the tests show", _tests(a, root)]
    if measured := _measured(a, root):
        parts += ["## Measured", measured]
    if experiments := experiments_of(a.names, root):
        parts += ["## Experiments", "\n".join(f"- {_link(file, root)}" for file in experiments)]
    sources = [_link(root / f"kernels/modules/tcp_{a.module}.c", root)]
    if spec.is_file():
        sources.append(f"its specification {_link(spec, root)}")
    parts += ["## Source", ", ".join(sources)]
    return "\n\n".join(parts) + "\n"


def _link(file: Path, root: Path) -> str:
    name = file.relative_to(root)
    return f"[{name}](../../{name})"


def _measured(a: Algorithm, root: Path) -> str:
    """What was measured of it with a command, kept beside the pages; without the line of its licence."""
    file = root / f"docs/algorithms/measured/{a.module}.md"
    return file.read_text().partition("\n")[2].strip() if file.is_file() else ""


def _parameters(a: Algorithm, root: Path) -> str:
    if not a.parameters:
        return "None."
    rows = [_parameter_row(p) for p in a.parameters]
    example, default = a.parameters[0].name, a.parameters[0].description.default
    text = (
        f"In an experiment `cca: {{name: {main_name(a)}, params: {{{example}: {default}}}}}`. "
        "A value out of range is refused at each write; the values are recorded with each run."
    )
    return "\n".join(["| parameter | meaning, unit | range | default |", "|---|---|---|---|", *rows]) + "\n\n" + text


def _parameter_row(parameter: Parameter) -> str:
    description = parameter.description
    bounds = " – ".join(map(str, description.range or ()))
    return f"| `{parameter.name}` | {_plain(description.meaning)} | {bounds} | {description.default} |"


def _tests(a: Algorithm, root: Path) -> str:
    parts = []
    for file in test_files(a.module, root):
        lines = [
            f"- {_plain(test.claim)}" + (f": {_plain(test.words)}" if test.words else "") for test in tests_of(file)
        ]
        parts.append(f"{_link(file, root)}:\n\n" + "\n".join(lines))
    general = root / "tests/kernels/test_spec_modules.py"
    parts.append(f"As every module: {_link(general, root)}.")
    return "\n\n".join(parts)


def index(algorithms: list[Algorithm], root: Path) -> str:
    """The table of all algorithms."""
    rows = [
        f"| {', '.join(f'`{name}`' for name in a.names)} | [{_plain(a.title)}]({a.module}.md) |" for a in algorithms
    ]
    own = [f"| `{name}` | {summary} |" for name, summary in IN_TREE.items()]
    return "\n".join(
        [
            MADE + "# Congestion control algorithms\n",
            "What an experiment file may name as `cca`. `./warpbed list algorithms` prints the names.\n",
            "## Of this project\n",
            "Kernel modules of [kernels/modules](../../kernels/modules), each held against a specification in Python of",
            "[kernels/reference](../../kernels/reference), hook by hook. `./warpbed new-algorithm NAME` makes another.\n",
            "| name | algorithm |",
            "|---|---|",
            *rows,
            "\n## Of the kernel\n",
            "| name | algorithm |",
            "|---|---|",
            *own,
            "",
        ]
    )


def pages(root: Path = ROOT) -> dict[Path, str]:
    """Every page with its text."""
    algorithms = [parse(source) for source in sorted((root / "kernels/modules").glob("tcp_*.c"))]
    folder = root / "docs/algorithms"
    of_modules = {folder / f"{a.module}.md": page(a, root) for a in algorithms}
    return {folder / "README.md": index(algorithms, root), **of_modules}


def stale(root: Path = ROOT) -> list[Path]:
    """Pages that are missing, out of date, or of no module any more."""
    current = pages(root)
    wrong = [file for file, text in current.items() if not file.is_file() or file.read_text() != text]
    return sorted([*wrong, *(file for file in (root / "docs/algorithms").glob("*.md") if file not in current)])


def write(root: Path = ROOT) -> None:
    (root / "docs/algorithms").mkdir(parents=True, exist_ok=True)
    for file, text in pages(root).items():
        file.write_text(text)
    for file in stale(root):
        file.unlink()


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Make docs/algorithms from the modules.")
    parser.add_argument("--check", action="store_true", help="write nothing, say which pages are out of date")
    options = parser.parse_args(argv)
    try:
        if not options.check:
            write()
            return 0
        wrong = stale()
    except WarpbedError as error:
        print(error, file=sys.stderr)
        return 2
    for file in wrong:
        print(f"{file.relative_to(ROOT)}: out of date; python -m kernels.algorithm_docs makes it", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
