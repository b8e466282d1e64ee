# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import fcntl
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from base.paths import ROOT

ANSWER = """import os, sys
print(sys.argv[1:], os.environ.get("FAKE_VENV", sys.prefix), os.environ["PYTHONPATH"], os.getcwd(), sep="|")
"""

# Making a real environment takes seconds; this one stands for it. Its pip fails for a lock file that says so.
QUICK_PYTHON = r"""#!/bin/sh
case "$*" in
"-m venv "*)
    mkdir -p "$3/bin"
    cat >"$3/bin/python" <<'END'
#!/bin/sh
case "$*" in
"-m pip "*) for lock; do :; done; ! grep -q impossible "$lock"; exit ;;
esac
FAKE_VENV="${0%/bin/python}" exec /usr/bin/python3 "$@"
END
    chmod +x "$3/bin/python" ;;
esac
"""


class Checkout:
    """A copy of the entry script with a lock file that installs nothing and a `testbed` that says how it was called."""

    def __init__(self, root: Path) -> None:
        self.root = root / "checkout"
        self.cache = root / "cache"
        (self.root / "testbed").mkdir(parents=True)
        (self.root / "testbed/__main__.py").write_text(ANSWER)
        for lock in ROOT.glob("requirements*.lock"):
            (self.root / lock.name).write_text(f"# {lock.name}\n")
        shutil.copy(ROOT / "warpbed", self.root)

    def replace_python(self, script: str) -> None:
        """Let another program stand where the distribution's Python is."""
        fake = self.root / "fake"
        fake.mkdir(exist_ok=True)
        (fake / "python3").write_text(script)
        (fake / "python3").chmod(0o755)
        entry = self.root / "warpbed"
        entry.write_text(re.sub(r"(?m)^python=\S+", f"python={fake}/python3", entry.read_text()))

    def environment(self, **more: str) -> dict[str, str]:
        return {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": str(self.root),
            "WARPBED_CACHE": str(self.cache),
            **more,
        }

    def __call__(self, *arguments: str, program: Path | None = None, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(program or self.root / "warpbed"), *arguments],
            check=False,
            capture_output=True,
            text=True,
            cwd="/",
            env=self.environment(**more),
        )


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    checkout = Checkout(tmp_path)
    checkout.replace_python(QUICK_PYTHON)
    return checkout


def test_it_works_through_a_symlink_from_any_folder(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path)
    link = tmp_path / "link"
    link.symlink_to(checkout.root / "warpbed")
    done = checkout("run", "a b.yml", program=link)
    assert done.returncode == 0, done.stderr
    arguments, prefix, python_path, cwd = done.stdout.strip().split("|")
    assert arguments == "['run', 'a b.yml']"
    assert Path(prefix).parent == checkout.cache / "venv"
    assert python_path == f"{checkout.root}:{checkout.root}/python"
    assert cwd == "/"


def test_the_second_start_makes_nothing_and_starts_few_programs(checkout: Checkout, tmp_path: Path) -> None:
    """How long a start takes depends on the programs that it starts, and these are the same on any machine."""
    started, counted = tmp_path / "started", tmp_path / "counted"
    counted.mkdir()
    for folder in ("/usr/bin", "/usr/sbin"):
        for program in Path(folder).iterdir():
            script = f'#!/bin/sh\necho {shlex.quote(program.name)} >>{started}\nexec {shlex.quote(str(program))} "$@"\n'
            (counted / program.name).write_text(script)
            (counted / program.name).chmod(0o755)
    path = f"{counted}:/usr/sbin:/usr/bin:/sbin:/bin"
    assert "making the Python environment" in checkout(PATH=path).stderr
    at_first = started.read_text().split()
    assert "flock" in at_first and "mkdir" in at_first  # so they are seen
    started.unlink()
    done = checkout("exec", "true", PATH=path)
    assert (done.returncode, done.stderr) == (0, "")
    again = started.read_text().split()
    assert len(again) <= 10, again
    assert {"mkdir", "flock", "rm", "python3", "apt-get"}.isdisjoint(again)


def test_another_lock_file_gives_another_environment(checkout: Checkout) -> None:
    first = checkout().stdout
    (checkout.root / "requirements.lock").write_text("# changed\n")
    assert checkout().stdout != first
    assert checkout("test").stdout.split("|")[1] != checkout("run").stdout.split("|")[1]


def test_what_a_test_starts_shares_its_environment(checkout: Checkout) -> None:
    assert checkout("run", WARPBED_DEV="1").stdout.split("|")[1] == checkout("test").stdout.split("|")[1]


def made_from(text: str) -> str:
    return text.partition("environment from ")[2].partition(" (once)")[0]


def test_an_extra_is_installed_only_where_it_is_asked_for(checkout: Checkout) -> None:
    plain = checkout("run", "a.yml")
    assert made_from(plain.stderr) == "requirements.lock"
    for asked, environment in (
        (("run", "a.yml", "--engine", "local"), {}),
        (("exec", "true", "--engine", "dask"), {}),  # of another program
        (("check", "bundle"), {}),
    ):
        assert made_from(checkout(*asked, **environment).stderr) == "", asked


@pytest.mark.parametrize(
    ("arguments", "variable", "locks"),
    [
        (("run", "a.yml", "--engine", "dask"), "", "requirements.lock requirements-dask.lock"),
        (("campaign", "run", "a.yml", "--engine=dask"), "", "requirements.lock requirements-dask.lock"),
        (("bundle", "a.yml"), "", "requirements.lock requirements-crate.lock"),
        (("check", "a.yml"), "crate", "requirements.lock requirements-crate.lock"),
        (
            ("exec", "true"),
            "notebooks,crate notebooks",
            "requirements.lock requirements-notebooks.lock requirements-crate.lock",
        ),
        (
            ("run", "a.yml", "--engine=dask", "--cluster", "kubernetes"),
            "",
            "requirements.lock requirements-kubernetes.lock",
        ),
        (("test",), "notebooks", "requirements-dev.lock"),
    ],
)
def test_an_environment_has_the_extras_that_a_command_or_the_user_names(
    checkout: Checkout, arguments: tuple[str, ...], variable: str, locks: str
) -> None:
    assert made_from(checkout(*arguments, WARPBED_EXTRAS=variable).stderr) == locks


def test_an_unknown_extra_is_refused(checkout: Checkout) -> None:
    done = checkout("run", WARPBED_EXTRAS="pandas")
    assert done.returncode == 2
    assert "'pandas'; allowed: crate, dask" in done.stderr


def test_extras_name_one_version_of_each_package() -> None:
    pins: dict[str, set[str]] = {}
    for lock in ROOT.glob("requirements*.lock"):
        for name, version in re.findall(r"(?m)^([a-z0-9.-]+)==([^ ]+)", lock.read_text()):
            pins.setdefault(name, set()).add(version)
    assert len(pins) > 100
    assert {name: versions for name, versions in pins.items() if len(versions) > 1} == {}


def test_an_interrupted_environment_is_made_again(checkout: Checkout) -> None:
    checkout()
    (marker,) = checkout.cache.glob("venv/*/.complete")
    marker.unlink()
    (marker.parent / "bin/python").unlink()
    assert checkout().returncode == 0
    assert marker.exists()


def test_a_moved_cache_is_not_trusted(checkout: Checkout, tmp_path: Path) -> None:
    checkout()
    checkout.cache.rename(tmp_path / "moved")
    done = checkout("run", WARPBED_CACHE=str(tmp_path / "moved"))
    assert "making the Python environment" in done.stderr
    assert done.returncode == 0


def test_an_environment_that_somebody_makes_without_end_is_waited_for_and_given_up(checkout: Checkout) -> None:
    entry = checkout.root / "warpbed"
    entry.write_text(re.sub(r"(?m)^patience=\d+", "patience=0.2", entry.read_text()))
    checkout()
    (marker,) = checkout.cache.glob("venv/*/.complete")
    marker.unlink()
    lock = marker.parent.with_name(f"{marker.parent.name}.lock")
    with lock.open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write("4242\n77\n")  # a longer number was there before
        file.flush()
        done = checkout()
    assert done.returncode == 2
    assert "waiting for the Python environment, which is being made by process 4242\n" in done.stderr
    assert f"{lock}: still held after 0.2 s by process 4242; end that process where it makes no progress" in done.stderr
    assert checkout().returncode == 0 and lock.read_text().partition("\n")[0].isdigit()


def test_two_first_starts_at_once_make_one_environment(checkout: Checkout) -> None:
    starts = [
        subprocess.Popen([checkout.root / "warpbed"], stderr=subprocess.PIPE, text=True, env=checkout.environment())
        for _ in range(3)
    ]
    output = "".join(start.communicate(timeout=60)[1] for start in starts)
    assert [start.returncode for start in starts] == [0, 0, 0]
    assert output.count("making the Python environment") == 1


def test_a_failed_installation_ends_with_2_and_leaves_nothing_half_made(checkout: Checkout) -> None:
    (checkout.root / "requirements.lock").write_text("impossible\n")
    done = checkout()
    assert done.returncode == 2
    assert "could not make the Python environment" in done.stderr
    assert not [path for path in (checkout.cache / "venv").iterdir() if path.is_dir()]


def test_a_module_in_the_current_folder_is_not_imported(checkout: Checkout, tmp_path: Path) -> None:
    checkout()
    (tmp_path / "json.py").write_text("raise SystemExit('wrong module')\n")
    (checkout.root / "testbed/__main__.py").write_text("import json\n")
    done = subprocess.run([checkout.root / "warpbed"], check=False, cwd=tmp_path, env=checkout.environment())
    assert done.returncode == 0


def test_another_python_on_the_path_is_not_used(checkout: Checkout, tmp_path: Path) -> None:
    shim = tmp_path / "shims/python3"
    shim.parent.mkdir()
    shim.write_text("#!/bin/sh\nexit 9\n")
    shim.chmod(0o755)
    assert checkout(PATH=f"{shim.parent}:/usr/bin:/bin").returncode == 0


@pytest.mark.parametrize("python", ["#!/bin/sh\nexit 1\n", None], ids=["without venv", "without python3"])
def test_without_venv_a_user_is_told_which_packages_to_install(checkout: Checkout, python: str | None) -> None:
    checkout.replace_python(python or "")
    if python is None:
        (checkout.root / "fake/python3").unlink()
    identity = checkout.root / "fake/id"
    identity.write_text("#!/bin/sh\necho 1000\n")
    identity.chmod(0o755)
    done = checkout("run", PATH=f"{identity.parent}:/usr/bin:/bin")
    assert done.returncode == 2
    assert done.stderr.strip().endswith("As root: apt-get install --no-install-recommends python3 python3-venv")
    assert not checkout.cache.exists()


def test_root_installs_only_what_is_missing_for_python(checkout: Checkout) -> None:
    checkout.replace_python("#!/bin/sh\nexit 1\n")
    for name, text in {"id": "echo 0", "apt-get": f'echo "$@" >>{checkout.root}/apt.log'}.items():
        (checkout.root / "fake" / name).write_text(f"#!/bin/sh\n{text}\n")
        (checkout.root / "fake" / name).chmod(0o755)
    checkout("run", PATH=f"{checkout.root}/fake:/usr/bin:/bin")
    assert (checkout.root / "apt.log").read_text().splitlines() == [
        "-qq update",
        "-qq install --no-install-recommends python3 python3-venv",
    ]


@pytest.mark.skipif(not shutil.which("dash"), reason="dash is not installed")
def test_dash_accepts_it() -> None:
    subprocess.run(["dash", "-n", ROOT / "warpbed"], check=True)


@pytest.mark.skipif(not shutil.which("shellcheck"), reason="shellcheck is not installed")
def test_shellcheck_accepts_every_shell_script() -> None:
    subprocess.run(["shellcheck", ROOT / "warpbed", ROOT / ".ci/run", *ROOT.glob("tools/*.sh")], check=True)


def test_the_machine_is_left_out_of_the_lock_files() -> None:
    for lock in ROOT.glob("requirements*.lock"):
        assert "://" not in lock.read_text()
        assert "--hash=sha256:" in lock.read_text()
