#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# get-uplot.sh writes what the status page has of uPlot, which draws its charts, into controlplane/page, as it is in the package on
# npm: of this version, with this content, and nothing of it changed. Run it to take another version.
set -eu

version=1.6.32
integrity=sha512-KIMVnG68zvu5XXUbC4LQEPnhwOxBuLyW1AHtpm6IKTXImkbLgkMy+jabjLgSLMasNuGGzQm/ep3tOkyTxpiQIw==

page=$(cd "$(dirname "$0")/../controlplane/page" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm pack --silent "uplot@$version" >/dev/null
got=sha512-$(openssl dgst -sha512 -binary "uplot-$version.tgz" | openssl base64 -A)
[ "$got" = "$integrity" ] || {
	echo "get-uplot: uplot $version is not what it was: $got" >&2
	exit 1
}
tar xzf "uplot-$version.tgz"
cp package/dist/uPlot.iife.min.js "$page/uplot.js"
cp package/dist/uPlot.min.css "$page/uplot.css"
cp package/LICENSE "$page/uplot.LICENSE"
