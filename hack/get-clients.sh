#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# get-clients.sh DIR puts the client libraries that e2e/clients_test.go talks with at DIR/clients: Python's in an environment of
# their own, checked against the hashes in e2e/clients/requirements.txt, and Node's as e2e/clients/node/package-lock.json says.
# openai-go needs nothing here, for Go checks it against e2e/clients/go/go.sum. Where they are already there, nothing is done.
set -eu
# shellcheck source=hack/python.sh
. "$(dirname "$0")/python.sh"

dir=${1:?usage: sh hack/get-clients.sh DIR}
pinned=$(cd "$(dirname "$0")/../e2e/clients" && pwd)
mkdir -p "$dir/clients"
dir=$(cd "$dir/clients" && pwd)

fail() {
	echo "get-clients: $1" >&2
	exit 1
}

python_packages "$pinned/requirements.txt" "$dir/python"

if ! cmp -s "$pinned/node/package-lock.json" "$dir/node/package-lock.json"; then
	node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' 2>/dev/null && npm --version >/dev/null 2>&1 ||
		fail "needs Node 20 or later with npm (Debian 13, Ubuntu 25.04 and later: apt-get install nodejs npm; else nodejs.org)"
	rm -rf "$dir/node"
	mkdir -p "$dir/node.new"
	cp "$pinned/node/package.json" "$pinned/node/package-lock.json" "$dir/node.new"
	(cd "$dir/node.new" && npm ci --silent --ignore-scripts --no-audit --no-fund) >&2 || fail "npm could not install: see above"
	mv "$dir/node.new" "$dir/node"
fi
