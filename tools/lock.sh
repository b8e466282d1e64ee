#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Regenerates requirements*.lock from the .in files. `tools/lock.sh --upgrade` also moves
# to the newest versions that the .in files allow; without it, versions stay as locked where they still fit.
set -eu
cd "$(dirname "$0")/.."

uv_version=0.13.8
uv_sha256=e18a57b8b352eb7c8feb317b9f6f533c8f0ad9673fd6cf34bbe3cf1a9f6a8984 # of its wheel for Linux on x86-64
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
/usr/bin/python3 -m venv "$tmp/venv"
echo "uv==$uv_version --hash=sha256:$uv_sha256" >"$tmp/uv.txt"
"$tmp/venv/bin/pip" install --quiet --require-hashes --only-binary :all: -r "$tmp/uv.txt"

lock() {
    # --fork-strategy fewest: the same versions, and so the same numbers, on Python 3.11 and 3.13.
    # --only-binary: the entry script builds nothing.
    # --no-emit-*: this machine's package index stays out of the file.
    "$tmp/venv/bin/uv" pip compile --quiet --universal --python-version 3.11 --fork-strategy fewest --only-binary :all: \
        --generate-hashes --no-emit-index-url --no-emit-find-links --no-header "$@" >/dev/null
    out=$(basename "$3")
    { printf '# %s\n' 'SPDX-License-Identifier:'' Apache-2.0' 'Made by tools/lock.sh; edit the .in file instead.'
      grep -v -e '^# SPDX' -e '^# Made by' "$out"; } >"$tmp/$out"
    cat "$tmp/$out" >"$out"
}

lock requirements.in -o requirements.lock "$@"
lock requirements-dev.in -o requirements-dev.lock "$@"
# Extras are installed beside a run's packages and beside one another, so all of them have one version of each package.
for extra in crate dask kubernetes notebooks; do
    lock "requirements-$extra.in" -o "requirements-$extra.lock" -c requirements-dev.lock
done
