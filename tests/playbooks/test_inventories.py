# SPDX-License-Identifier: Apache-2.0
"""The example inventories, one for each kind of host: complete, documented, and refused with the variable's name when wrong."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from base.paths import ROOT
from tests.plays import BIN
from tests.recap import WORDS

pytestmark = pytest.mark.real_host
GIVEN = ("-e", "experiment=experiments/quickstart.yml", "-e", "campaign=campaigns/nctu.yml")
# kind: group, playbooks that take the inventory, what is said besides, and roles whose variables are then checked on its hosts
KINDS: dict[str, tuple[str, Sequence[str], Sequence[str], Sequence[str]]] = {
    "virtual": ("virtual", ("run_experiment", "collect", "dashboards", "test_environment", "wan_campaign"),
        ("-e", "results=results"),
                ("experiment", "collect", "dashboards", "campaign", "kernel_build", "lab_machine_disk")),
    "local": ("local", ("run_experiment",), ("-e", "experiment_host=local"), ("bootstrap", "experiment")),
    "vm": ("vm", ("build_machines", "run_experiment"), ("-e", "experiment_host=vm"),
        ("kernel_build", "vm_image", "experiment")),
    "cabled": ("cabled", ("build_machines", "run_experiment"), ("-e", "experiment_host=cabled"),
        ("vm_image", "experiment")),
    "lab": ("lab", ("run_experiment", "lab_kernel", "teardown"), ("-e", "experiment_host=lab"),
            ("lab_preflight", "lab_path", "lab_kernel", "lab_tuning", "lab_teardown", "experiment")),
    "wan": ("wan", ("wan_campaign", "teardown"), (), ("wan_end", "wan_teardown", "campaign")),
}  # fmt: skip


def folder_of(kind: str) -> Path:
    return ROOT / "inventory" / {"cabled": "vm"}.get(kind, kind)


def ansible(program: str, *arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [BIN / program, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), **WORDS, **environment},
    )


def validated(kind: str, inventory: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """The plays, but of their tasks only those that hold the roles' variables against argument_specs: no host is reached."""
    _, playbooks, given, _ = KINDS[kind]
    files = [f"playbooks/{name}.yml" for name in playbooks]
    return ansible("ansible-playbook", *files, "-i", inventory, *GIVEN, *given, "--tags", "none", *more)


def documented() -> set[str]:
    """Variables that a role's argument_specs name: its options, and those by which an inventory sets several of them."""
    names: set[str] = set()
    for file in (ROOT / "playbooks/roles").glob("*/meta/argument_specs.yml"):
        names |= set(YAML(typ="safe").load(file.read_text())["argument_specs"]["main"].get("options", {}))
        names |= set(re.findall(r"C\(((?:lab|wan)_[a-z_]+)\)", file.read_text()))
    return names


def variables(tree: Any) -> dict[str, list[Any]]:
    """All variables of an inventory's file, with their values."""
    values: dict[str, list[Any]] = {}
    for key, value in (tree or {}).items():
        if key == "vars":
            for name, given in value.items():
                values.setdefault(name, []).append(given)
        elif key == "hosts":
            for host in (value or {}).values():
                for name, given in (host or {}).items():
                    values.setdefault(name, []).append(given)
        elif isinstance(value, dict):
            for name, given in variables(value).items():
                values.setdefault(name, []).extend(given)
    return values


def test_every_kind_of_host_has_an_inventory() -> None:
    assert {path.name for path in (ROOT / "inventory").iterdir() if path.is_dir()} == {
        folder_of(kind).name for kind in KINDS
    }


@pytest.mark.parametrize("kind", KINDS)
def test_an_example_is_an_inventory_that_its_playbooks_take(kind: str) -> None:
    group, _, _, roles = KINDS[kind]
    listed = ansible("ansible-inventory", "-i", folder_of(kind), "--list")
    assert listed.returncode == 0, listed.stderr
    hosts = json.loads(listed.stdout)[group]["hosts"]
    checked = validated(kind, folder_of(kind), "--syntax-check")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    done = validated(kind, folder_of(kind))
    assert done.returncode == 0, done.stdout + done.stderr
    seen = {
        match[1]: match[2] for match in re.finditer(r"\[(\w+) : Validating arguments .*\n((?:ok: .*\n)+)", done.stdout)
    }
    for role in roles:
        ends = hosts if role.startswith(("lab_p", "lab_k", "lab_t", "wan_")) else ["localhost"]
        assert [host for host in ends if f"ok: [{host}]" not in seen.get(role, "")] == [], role


@pytest.mark.parametrize("kind", sorted({folder_of(kind).name for kind in KINDS}))
def test_every_variable_of_an_example_is_documented(kind: str) -> None:
    own = [
        name
        for name in variables(YAML(typ="safe").load((ROOT / f"inventory/{kind}/hosts.yml").read_text()))
        if not name.startswith("ansible_")
    ]
    assert [name for name in own if name not in documented()] == []


def test_every_variable_that_an_inventory_may_set_for_all_roles_is_documented() -> None:
    used = {
        name
        for file in (ROOT / "playbooks/roles").glob("*/defaults/main.yml")
        for name in re.findall(
            r"\b(?:lab|wan)_(?!preflight|path|kernel|tuning|teardown|machine|end)[a-z_]+", file.read_text()
        )
    }
    assert {"lab_node", "lab_nics", "wan_address"} <= used <= documented()


@pytest.mark.parametrize(
    ("kind", "value", "name"),
    [
        ("lab", {"lab_nics": 3}, "lab_preflight_nics"),
        ("lab", {"lab_kernel_mode": "rpm"}, "lab_kernel_mode"),
        ("lab", {"lab_become": "perhaps"}, "lab_preflight_become"),
        ("lab", {"lab_tuning_irq_cpu": "first"}, "lab_tuning_irq_cpu"),
        ("wan", {"wan_end_port": "iperf"}, "wan_end_port"),
        ("vm", {"kernel_build_jobs": "all"}, "kernel_build_jobs"),
        ("local", {"experiment_host": "local", "experiment_jobs": "many"}, "experiment_jobs"),
        ("virtual", {"dashboards_state": "sideways"}, "dashboards_state"),
    ],
)
def test_a_wrong_value_is_refused_with_its_variables_name(kind: str, value: dict[str, Any], name: str) -> None:
    done = validated(kind, folder_of(kind), "-e", json.dumps(value))
    assert done.returncode == 2
    assert re.search(rf"Validation of arguments failed:\s+[^\n]*'?{name}\b", done.stdout + done.stderr), done.stdout


@pytest.mark.parametrize(("kind", "name"), [("lab", "lab_nics"), ("lab", "lab_node"), ("wan", "wan_address")])
def test_a_variable_that_lacks_or_is_misspelt_is_named(kind: str, name: str, tmp_path: Path) -> None:
    text = (folder_of(kind) / "hosts.yml").read_text()
    (tmp_path / "hosts.yml").write_text(text.replace(f"{name}:", f"{name}s:"))
    done = validated(kind, tmp_path)
    assert done.returncode == 2 and f"'{name}' is undefined" in done.stdout + done.stderr


def test_host_keys_are_checked_wherever_ssh_is_called() -> None:
    assert re.search(r"^host_key_checking = True$", (ROOT / "ansible.cfg").read_text(), re.MULTILINE)
    folders = ("inventory", "playbooks", "testbed", "hosts", "store", "dashboards", "agent")
    files = [file for folder in folders for kind in ("yml", "py") for file in ROOT.glob(f"{folder}/**/*.{kind}")]
    lax = re.compile(r"UserKnownHostsFile\s*=\s*/dev/null|host_key_checking\s*[:=]\s*[Ff]")
    texts = {file: file.read_text() for file in files}
    settings = {word for text in texts.values() for word in re.findall(r"StrictHostKeyChecking\W+(\w+)", text)}
    assert settings == {"yes"} and [file for file, text in texts.items() if lax.search(text)] == []


def test_the_vault_of_the_documentation_is_encrypted_and_found_by_itself(tmp_path: Path) -> None:
    (block,) = [
        text
        for text in re.findall(r"```sh\n(.*?)```", (ROOT / "docs/lab.md").read_text(), re.DOTALL)
        if "ansible-vault" in text
    ]
    steps = [line for line in block.splitlines() if "ansible-playbook" not in line]
    shutil.copytree(ROOT / "inventory/lab", tmp_path / "inventory/lab")
    secret, password, editor, entry = (
        "correct horse 4712",
        tmp_path / "password",
        tmp_path / "editor",
        tmp_path / "warpbed",
    )
    password.write_text("opens the vault\n")
    editor.write_text(f"#!/bin/sh\necho 'vault_become_password: {secret}' >\"$1\"\n")
    # the editor is a program here, so that no terminal is needed
    entry.write_text(
        f'#!/bin/sh\nprogram=$2; action=$3; shift 3; exec "{BIN}/$program" "$action" --skip-tty-check "$@"\n'
    )
    for program in (editor, entry):
        program.chmod(0o755)
    subprocess.run(
        ["sh", "-e", "-c", "\n".join(steps)],
        cwd=tmp_path,
        check=True,
        env={**os.environ, "EDITOR": str(editor), "ANSIBLE_VAULT_PASSWORD_FILE": str(password)},
    )
    vault = tmp_path / "inventory/lab/group_vars/lab/vault.yml"
    assert vault.read_text().startswith("$ANSIBLE_VAULT;1.1;AES256\n") and vault.stat().st_mode & 0o077 == 0
    assert [file for file in tmp_path.rglob("*.yml") if secret in file.read_text()] == []
    ask = ("ansible-inventory", "-i", tmp_path / "inventory/lab", "--host", "sender.lab.example")
    known = ansible(*ask, ANSIBLE_VAULT_PASSWORD_FILE=str(password))
    assert json.loads(known.stdout)["vault_become_password"] == secret
    closed = ansible(*ask)
    assert closed.returncode != 0 and "vault" in closed.stderr.lower() and secret not in closed.stdout


def test_no_inventory_holds_a_secret_in_clear() -> None:
    for file in (ROOT / "inventory").rglob("*.yml"):
        text = file.read_text()
        if text.startswith("$ANSIBLE_VAULT"):
            continue
        for name, given in variables(YAML(typ="safe").load(text)).items():
            if re.search(r"pass(word|wd)?$|secret|token", name):
                assert all(str(value).startswith("{{") for value in given), f"{file}: {name}"
