# SPDX-License-Identifier: Apache-2.0
"""Which interfaces of a lab machine no run may touch (hosts/lab/control.py), on machines made of files and ip's answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hosts.lab import control
from tests.lab_module import answer

FROM = "192.0.2.1 40000 192.0.2.2 22"


class Machine:
    """Interfaces below a folder as the kernel's, and what `ip` says of them."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.net, self.answers = folder / "net", {}
        self.net.mkdir()
        monkeypatch.setattr(control, "SYS_NET", self.net)
        monkeypatch.setattr(control, "ip", lambda *arguments: self.answers.get(arguments, []))

    def has(self, *names: str, address_at: str = "", back_by: str = "") -> None:
        for name in names:
            (self.net / name).mkdir()
        self.answers["address",] = [{"ifname": address_at, "addr_info": [{"local": "192.0.2.2"}]}]
        route = ("route", "get", "192.0.2.1", "from", "192.0.2.2")
        self.answers[route] = [{"dst": "192.0.2.1", "dev": back_by or address_at}]

    def lies_on(self, upper: str, lower: str) -> None:
        (self.net / upper / f"lower_{lower}").symlink_to(f"../{lower}")

    def is_port(self, port: str, of: str) -> None:
        self.lies_on(of, port)
        (self.net / port / "master").symlink_to(f"../{of}")

    def is_a(self, name: str, kind: str) -> None:
        """As ip tells it; of l2tpeth, which has no kind for ip, as the kernel's uevent does."""
        if kind == "l2tpeth":
            (self.net / name / "uevent").write_text(f"DEVTYPE={kind}\nINTERFACE={name}\n")
        else:
            self.answers["-details", "link", "show", "dev", name] = [{"linkinfo": {"info_kind": kind}}]

    answers: dict[tuple[str, ...], list[dict[str, Any]]]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_the_parent_of_a_vlan_and_all_ports_of_the_bond_below_it_carry_control(machine: Machine) -> None:
    machine.has("eno1", "eno2", "eno3", "bond0", "bond0.100", address_at="bond0.100")
    machine.lies_on("bond0.100", "bond0")
    machine.is_port("eno1", "bond0")
    machine.is_port("eno2", "bond0")
    reasons = control.protected([], FROM)
    assert set(reasons) == {"bond0.100", "bond0", "eno1", "eno2"}
    assert reasons["bond0.100"] == "is the control interface"
    assert reasons["eno1"] == reasons["eno2"] == "carries the control interface (bond0)"


def test_an_address_of_one_interface_whose_answers_leave_by_another_protects_both(machine: Machine) -> None:
    machine.has("eno1", "eno2", "eno3", address_at="eno1", back_by="eno2")
    assert set(control.protected([], FROM)) == {"eno1", "eno2"}


@pytest.mark.parametrize(
    "connection", ["::ffff:192.0.2.1 40000 ::ffff:192.0.2.2 22", "192.0.2.1%eno1 40000 192.0.2.2%eno1 22"]
)
def test_mapped_addresses_and_zones_are_the_same_addresses(machine: Machine, connection: str) -> None:
    machine.has("eno1", address_at="eno1")
    assert set(control.protected([], connection)) == {"eno1"}


def test_default_routes_of_both_families_and_of_each_hop_are_protected(machine: Machine) -> None:
    machine.has("eno1", "eno2", "eno3", "eno4", address_at="eno1")
    machine.answers["-4", "route", "show", "default"] = [{"nexthops": [{"dev": "eno2"}, {"dev": "eno3"}]}]
    machine.answers["-6", "route", "show", "default"] = [{"dev": "eno4"}]
    reasons = control.protected([], FROM)
    assert {reasons[name] for name in ("eno2", "eno3", "eno4")} == {"carries the default route"}


@pytest.mark.parametrize("kind", ["wireguard", "geneve", "erspan", "vti6", "openvswitch", "l2tpeth"])
def test_what_carries_a_tunnel_or_a_software_switch_is_not_guessed(machine: Machine, kind: str) -> None:
    machine.has("wg0", "eno1", address_at="wg0")
    machine.is_a("wg0", kind)
    with pytest.raises(control.UnknownError, match=rf"comes in by wg0 \({kind}\), and .* not known; set lab_control"):
        control.protected([], FROM)
    assert set(control.protected(["eno1"], FROM)) == {"eno1", "wg0"}


@pytest.mark.parametrize("kind", ["vxlan", "openvswitch"])
def test_a_bridge_over_a_tunnel_is_no_less_unknown(machine: Machine, kind: str) -> None:
    machine.has("br0", "vx0", "eno1", address_at="br0")
    machine.is_port("vx0", "br0")
    machine.is_a("vx0", kind)
    with pytest.raises(control.UnknownError, match=rf"comes in by what vx0 \({kind}\) is part of"):
        control.protected([], FROM)
    assert set(control.protected(["eno1"], FROM)) == {"eno1", "br0", "vx0"}


def test_a_connection_through_another_ssh_is_no_control_interface(machine: Machine) -> None:
    """A reverse tunnel, whose own connection comes in by an interface that has no default route either."""
    machine.has("lo", "eno1", "eno2")
    machine.answers["address",] = [{"ifname": "lo", "addr_info": [{"local": "127.0.0.1"}]}]
    machine.answers["route", "get", "127.0.0.1", "from", "127.0.0.1"] = [{"dst": "127.0.0.1", "dev": "lo"}]
    with pytest.raises(control.UnknownError, match=r"comes in by lo \(loopback.*set lab_control"):
        control.protected([], "127.0.0.1 40000 127.0.0.1 22")
    assert set(control.protected(["eno1"], "127.0.0.1 40000 127.0.0.1 22")) == {"eno1", "lo"}


@pytest.mark.parametrize("connection", ["", "192.0.2.1 40000", "192.0.2.1 40000 192.0.2.77 22"])
def test_without_a_connection_or_with_one_to_an_address_that_is_gone_nothing_is_known(
    machine: Machine, connection: str
) -> None:
    machine.has("eno1", address_at="eno1")
    with pytest.raises(control.UnknownError, match="is not known; set lab_control"):
        control.protected([], connection)
    assert set(control.protected(["eno1"], connection)) == {"eno1"}


def test_where_the_control_interface_is_not_known_or_named_the_module_changes_nothing(tmp_path: Path) -> None:
    def tune(**more: Any) -> str:
        result = answer({"state": "tuned", "nics": ["lo"], "root": str(tmp_path), **more})
        assert result["failed"] and not list(tmp_path.iterdir())
        return str(result["msg"])

    assert "which interface SSH comes in by is not known" in tune()
    assert "lo is the control interface; it is never touched" in tune(protected={"lo": "is the control interface"})
