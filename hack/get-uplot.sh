#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# get-uplot.sh writes what the status page has of uPlot, which draws its charts, into controlplane/page, as it is in the package on
# npm: of this version, with this content, and nothing of it changed. Run it to take another version.
set -eu
# shellcheck source=hack/npm.sh
. "$(dirname "$0")/npm.sh"

version=1.6.32
integrity=sha512-KIMVnG68zvu5XXUbC4LQEPnhwOxBuLyW1AHtpm6IKTXImkbLgkMy+jabjLgSLMasNuGGzQm/ep3tOkyTxpiQIw==

page=$(cd "$(dirname "$0")/../controlplane/page" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
	echo "get-uplot: $1" >&2
	exit 1
}

npm_package uplot "$version" "$integrity" "$work"
cp "$work/package/dist/uPlot.iife.min.js" "$page/uplot.js"
cp "$work/package/dist/uPlot.min.css" "$page/uplot.css"
cp "$work/package/LICENSE" "$page/uplot.LICENSE"
