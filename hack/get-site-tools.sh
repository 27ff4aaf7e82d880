#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# get-site-tools.sh DIR puts what builds the documentation's site at DIR/site: Sphinx with MyST and the theme Furo, from the Python
# package index, in an environment of their own and checked against the hashes in internal/site/requirements.txt, and mermaid.js,
# which draws the diagrams, from npm. Where they are already there, nothing is done, and nothing else is fetched later.
set -eu
# shellcheck source=hack/python.sh
. "$(dirname "$0")/python.sh"
# shellcheck source=hack/npm.sh
. "$(dirname "$0")/npm.sh"

dir=${1:?usage: sh hack/get-site-tools.sh DIR}
pinned=$(cd "$(dirname "$0")/../internal/site" && pwd)
mkdir -p "$dir/site"
dir=$(cd "$dir/site" && pwd)
mermaid=12.3.0
integrity=sha512-4113TdXeLAsMruJ79OpFL5O8+LTFXhQqZ260rF3tgUmiNAtRm4Uume04I+65PRN6yZ69J4f8rVYWW8zRk65UYw==

fail() {
	echo "get-site-tools: $1" >&2
	exit 1
}

python_packages "$pinned/requirements.txt" "$dir/python"

if [ ! -s "$dir/mermaid-$mermaid.js" ]; then
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	npm_package mermaid "$mermaid" "$integrity" "$work" package/dist/mermaid.min.js
	cp "$work/package/dist/mermaid.min.js" "$dir/mermaid.js"
	cp "$dir/mermaid.js" "$dir/mermaid-$mermaid.js"
fi
