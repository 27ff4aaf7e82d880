#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# get.sh DIR puts weir's peers at DIR: envoyproxy/ratelimit, built from the module that go.mod pins, and hardcap, from wheels that
# are checked against the hashes in hardcap.txt. LiteLLM only with LITELLM=1. Where they are already there, nothing is done.
set -eu

mkdir -p "${1:?usage: sh bench/get.sh DIR}"
dir=$(cd "$1" && pwd)
cd "$(dirname "$0")"
python=${PYTHON:-python3}

go build -o "$dir/ratelimit" github.com/envoyproxy/ratelimit/src/service_cmd

get() { # get NAME: an environment of its own, with what NAME.txt says
	cmp -s "$1.txt" "$dir/$1/pinned.txt" && return
	"$python" -m venv --clear --without-pip "$dir/$1"
	"$python" -m pip --python "$dir/$1/bin/python" install --quiet --disable-pip-version-check --require-hashes --no-deps --only-binary :all: --requirement "$1.txt" >&2
	cp "$1.txt" "$dir/$1/pinned.txt"
}

get hardcap
if [ -n "${LITELLM:-}" ]; then
	get litellm
fi
