#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# get-page-tools.sh DIR makes sure that there is what the tests look at the status page and the metrics with: a Chromium, axe-core
# (from npm, at DIR/page/axe.js), and promtool (from Debian's package prometheus, at DIR/page/promtool, where no other is installed).
set -eu
# shellcheck source=hack/npm.sh
. "$(dirname "$0")/npm.sh"

dir=${1:?usage: sh hack/get-page-tools.sh DIR}
mkdir -p "$dir/page"
dir=$(cd "$dir/page" && pwd)
axe=4.14.1
integrity=sha512-FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ==

fail() {
	echo "get-page-tools: $1" >&2
	exit 1
}
apt() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

if ! command -v chromium >/dev/null && ! command -v chromium-browser >/dev/null && ! command -v google-chrome >/dev/null; then
	apt || fail "the tests need chromium (Debian: apt-get install chromium)"
	apt-get install -y -qq --no-install-recommends chromium >/dev/null 2>&1 || {
		apt-get update -qq
		apt-get install -y -qq --no-install-recommends chromium >/dev/null
	}
fi

if [ ! -s "$dir/axe-$axe.js" ]; then
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	npm_package axe-core "$axe" "$integrity" "$work"
	cp "$work/package/axe.min.js" "$dir/axe.js"
	cp "$dir/axe.js" "$dir/axe-$axe.js"
fi

if ! command -v promtool >/dev/null && [ ! -x "$dir/promtool" ]; then
	apt || fail "the tests need promtool, which comes with Prometheus"
	unpacked=$(mktemp -d)
	chmod 755 "$unpacked"
	# Unpacked, not installed: the package would start a Prometheus.
	(cd "$unpacked" && { apt-get download -qq prometheus >/dev/null 2>&1 || { apt-get update -qq && apt-get download -qq prometheus >/dev/null; }; })
	dpkg -x "$unpacked"/prometheus_*.deb "$unpacked/x"
	cp "$unpacked/x/usr/bin/promtool" "$dir/promtool"
	rm -rf "$unpacked"
fi
