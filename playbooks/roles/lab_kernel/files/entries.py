# SPDX-License-Identifier: Apache-2.0
"""Print the boot loader's entries as JSON: release of the kernel → what grub-reboot and grub-set-default take."""

import json
import pathlib
import re

ENTRY = re.compile(r"^(\s*)(submenu|menuentry)\s.*\$menuentry_id_option\s+'([^']+)'")
entries, submenu = {}, ""
for line in pathlib.Path("/boot/grub/grub.cfg").read_text().splitlines():
    found = ENTRY.match(line)
    if found is None:
        continue
    indent, kind, name = found.groups()
    if not indent:
        submenu = ""
    if kind == "submenu":
        submenu = name
    elif release := re.fullmatch(r"gnulinux-(.+)-advanced-.*", name):
        entries[release[1]] = f"{submenu}>{name}" if submenu else name
print(json.dumps(entries))
