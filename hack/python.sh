#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# For get-clients.sh, get-site-tools.sh and bench/get.sh, which have fail: python_packages REQUIREMENTS DIR puts packages from the
# Python package index into an environment of their own at DIR, checked against the hashes in REQUIREMENTS. Where they are already
# there, nothing is done.
python=${PYTHON:-python3}

python_packages() {
	if cmp -s "$1" "$2/requirements.txt"; then
		return
	fi
	"$python" -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && "$python" -m pip --version >/dev/null 2>&1 ||
		fail "needs $python, 3.11 or later, with pip (Debian, Ubuntu: apt-get install python3-pip)"
	# Without a pip of its own the environment needs no python3-venv, which Debian keeps in a package by itself.
	"$python" -m venv --clear --without-pip "$2" || fail "there is no environment for Python: see above"
	"$python" -m pip --python "$2/bin/python" install --quiet --disable-pip-version-check --require-hashes --no-deps \
		--only-binary :all: --requirement "$1" >&2 || fail "pip could not install: see above (no network, or no wheel for this machine)"
	cp "$1" "$2/requirements.txt"
}
