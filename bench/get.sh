#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# get.sh DIR puts weir's peers at DIR: envoyproxy/ratelimit, built from the module that go.mod pins, and hardcap, from wheels that
# are checked against the hashes in hardcap.txt. LiteLLM only with LITELLM=1. Where they are already there, nothing is done.
set -eu

mkdir -p "${1:?usage: sh bench/get.sh DIR}"
dir=$(cd "$1" && pwd)
cd "$(dirname "$0")"
# shellcheck source=hack/python.sh
. ../hack/python.sh

fail() {
	echo "get: $1" >&2
	exit 1
}

go build -o "$dir/ratelimit" github.com/envoyproxy/ratelimit/src/service_cmd

python_packages hardcap.txt "$dir/hardcap"
if [ -n "${LITELLM:-}" ]; then
	python_packages litellm.txt "$dir/litellm"
fi
