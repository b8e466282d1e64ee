# SPDX-License-Identifier: Apache-2.0
"""The SSH client: what it gives to ssh, what it takes from a machine, and how failures are told apart."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from hosts.remote import Remote, RemoteError, UnreachableError
from testbed.campaign import remote as campaign
from testbed.campaign.ends import End

PINNED = Remote("192.0.2.1", 2222, "root", Path("/keys/id"), Path("/keys/known hosts"), "guest")
CONFIGURED = Remote("lab1", 22, None, None, become=True, extra=("-J", "jump"))
SSH = """\
#!/bin/sh
# stands for ssh: the last argument is the command line for the shell over there
for line; do :; done
{before}
exec sh -c "$line"
"""


def archive(*entries: tuple[str, bytes, bytes], mode: str = "w") -> bytes:
    """name, tarfile's type, content"""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as tar:  # type: ignore[call-overload]
        for name, kind, content in entries:
            entry = tarfile.TarInfo(name)
            entry.type, entry.size, entry.linkname = kind, len(content), "/etc/passwd"
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


@pytest.fixture
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The program that is called as ssh."""
    program = tmp_path / "bin/ssh"
    program.parent.mkdir()
    program.write_text(SSH.format(before=""))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return program


@pytest.mark.parametrize("way", [PINNED, CONFIGURED], ids=["pinned", "configured"])
def test_host_keys_are_checked_and_words_reach_the_shell_quoted(way: Remote) -> None:
    line = way.command("echo", "a b; rm -rf /")
    assert 'StrictHostKeyChecking="yes"' in line and 'BatchMode="yes"' in line
    assert line[line.index("--") + 1] == way.address
    assert line[-1].endswith("echo 'a b; rm -rf /'")


def test_a_pinned_machine_is_reached_without_the_users_own_configuration() -> None:
    line = PINNED.command("true")
    assert line[line.index("-F") + 1] == "none" and 'UserKnownHostsFile="/keys/known hosts"' in line
    assert 'IdentitiesOnly="yes"' in line and 'PasswordAuthentication="no"' in line
    assert "-F" not in CONFIGURED.command("true") and CONFIGURED.command("true")[-5:-1] == ["-J", "jump", "--", "lab1"]
    assert CONFIGURED.command("true")[-1] == "sudo -n true"


def test_a_failed_program_is_told_from_a_machine_that_cannot_be_reached(ssh: Path) -> None:
    assert PINNED.run("cat", data=b"hello") == b"hello"
    with pytest.raises(RemoteError, match=r"^sh: no such card$") as failed:
        PINNED.run("sh", "-c", "echo no such card >&2; exit 3")
    assert not isinstance(failed.value, UnreachableError)
    ssh.write_text(SSH.format(before="echo Permission denied >&2; exit 255"))
    with pytest.raises(UnreachableError, match=r"^cat: Permission denied$") as denied:
        PINNED.run("cat")
    assert denied.value.is_final
    ssh.write_text(SSH.format(before="echo Connection timed out >&2; exit 255"))
    with pytest.raises(UnreachableError) as away:
        PINNED.run("cat")
    assert not away.value.is_final
    ssh.write_text(SSH.format(before="exec sleep 60"))
    with pytest.raises(UnreachableError, match=r"^cat: not done after 0\.2 s$"):
        PINNED.run("cat", timeout_s=0.2)


def agent(folder: Path, output: bytes, code: int = 0) -> End:
    """An end of a campaign whose agent answers so, whatever it is asked."""
    (folder / "output").write_bytes(output)
    program = folder / "agent"
    program.write_text(
        f"import pathlib, sys; sys.stdin.read(); "
        f"sys.stdout.buffer.write(pathlib.Path({str(folder / 'output')!r}).read_bytes()); sys.exit({code})"
    )
    return End(address="192.0.2.1", host="h", agent=str(program), consent="mine", become=False)


def test_a_transfers_files_come_whole_or_not_at_all(ssh: Path, tmp_path: Path) -> None:
    whole = archive(("sender.json", tarfile.REGTYPE, b"{}" * 5000), mode="w:gz")
    campaign.fetch("a", agent(tmp_path, whole), "t1", tmp_path / "whole")
    assert (tmp_path / "whole/sender.json").stat().st_size == 10_000
    for name, output, code in (("cut", whole[:40], 0), ("failed", whole, 1), ("empty", b"", 0)):
        with pytest.raises(UnreachableError, match=r"^a: the files of t1 did not come through: "):
            campaign.fetch("a", agent(tmp_path, output, code), "t1", tmp_path / name)
        assert not (tmp_path / name).exists()
    for name in ("-rf", ".hidden", "x" * 90):
        with pytest.raises(campaign.RefusedError, match="does not belong to a transfer's files"):
            campaign.fetch(
                "a",
                agent(tmp_path, archive((name, tarfile.REGTYPE, b""), mode="w:gz")),
                "t1",
                tmp_path / f"f{len(name)}",
            )


def test_an_agents_refusal_silence_and_absence_are_told_apart(ssh: Path, tmp_path: Path) -> None:
    assert campaign.ask("a", agent(tmp_path, b'{"state": "ended"}'), "status") == {"state": "ended"}
    with pytest.raises(campaign.RefusedError, match=r"^a: no such transfer$"):
        campaign.ask("a", agent(tmp_path, b'{"refused": "no such transfer"}'), "status")
    with pytest.raises(campaign.RefusedError, match=r"^a: the agent gave no answer: exit code 7$"):
        campaign.ask("a", agent(tmp_path, b"", 7), "status")
    ssh.write_text(SSH.format(before="echo one >&2; echo Connection refused >&2; exit 255"))
    with pytest.raises(UnreachableError, match=r"^a: ssh: Connection refused$"):
        campaign.ask("a", agent(tmp_path, b"{}"), "status")
