# SPDX-License-Identifier: Apache-2.0
"""Which of the modules' sources go to a lab machine that builds them with DKMS."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernels import module_source
from tests import lab, plays

pytestmark = pytest.mark.real_host

PLAY = """\
- hosts: localhost
  gather_facts: false
  vars_files: ["{root}/playbooks/roles/lab_kernel/vars/main.yml"]
  tasks:
    - ansible.builtin.copy:
        dest: "{folder}/{{{{ item.key }}}}"
        content: "{{{{ item.value }}}}"
        mode: "0600"
      loop: "{{{{ {{'texts': lab_kernel_texts, 'known': lab_kernel_known}} | dict2items }}}}"
"""


def sources(folder: Path, *algorithms: str) -> set[str]:
    (folder / "playbooks").mkdir()
    for name in ("base", "kernels"):  # what the role finds beside the playbooks
        (folder / name).symlink_to(lab.ROOT / name)
    (folder / "playbooks/play.yml").write_text(PLAY.format(root=lab.ROOT, folder=folder))
    plays.run(str(folder / "playbooks/play"), variables={"lab_kernel_algorithms": algorithms})
    texts: dict[str, str] = json.loads((folder / "texts").read_text())
    for name, text in texts.items():
        assert text == (lab.ROOT / "kernels/modules" / name).read_text()
    return set(texts)


def test_an_algorithms_module_is_found_by_its_name_and_by_its_alias(tmp_path: Path) -> None:
    some = sources(tmp_path, "medley", "perack")
    assert {name for name in some if name.endswith(".c") and name.startswith(("tcp_", "warp_"))} == {
        "tcp_medley.c",
        "tcp_lbc.c",
    }
    assert {"dkms.conf", "Kbuild", "compat.h", "cc_group.c"} <= some


def test_without_a_choice_all_go_and_every_algorithm_can_be_chosen(tmp_path: Path) -> None:
    """um_*.c are for User-Mode Linux alone."""
    modules = (lab.ROOT / "kernels/modules").glob("*.c")
    names = {path.name for path in modules if not path.name.endswith(".mod.c") and not path.name.startswith("um_")}
    assert {name for name in sources(tmp_path) if name.endswith(".c")} == names
    known = set(json.loads((tmp_path / "known").read_text()))
    assert known == set(module_source.by_name())
