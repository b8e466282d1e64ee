# SPDX-License-Identifier: Apache-2.0
"""What names in experiment files may look like, as the schema has it and as a person is told."""

from __future__ import annotations

NAME = r"^[a-z][a-z0-9_-]{0,39}$"
NODE = r"^[A-Za-z_][A-Za-z0-9_]{0,8}$"
WAY = r"^\w{1,9}>\w{1,9}$"
LINK = r"^\w{1,9}[>-]\w{1,9}$"
# a `/` stands for a dot within a part (net.ipv4.conf.eth0/100.forwarding), so it must not make `..` of a part
SYSCTL = r"^net(\.[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*)+$"
PARAM = r"^[a-z][a-z0-9_]{0,39}$"
ENTRY = r"^[a-z0-9]+-[\w.-]+$"
PART = r"^[a-z0-9]+-[\w.-]+/[\w.-]+$"

WORDS = {
    NAME: "a small letter and then at most 39 small letters, digits, - and _, such as f1",
    NODE: "a node's name of at most 9 letters, digits and _, such as s1",
    WAY: "one direction of a link, such as s1>r1",
    LINK: "a link or one of its directions, such as r1-r2 or r1>r2",
    SYSCTL: "a sysctl of the network, such as net.ipv4.tcp_rmem",
    PARAM: "a small letter and then at most 39 small letters, digits and _, such as buffer",
    ENTRY: "an entry of a thesis' catalogue, such as ho2008-tab6.3",
    PART: "an entry of a thesis' catalogue and its part, such as ho2008-tab6.3/1",
}
