#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# For get-page-tools.sh, get-site-tools.sh and get-uplot.sh, which have fail: npm_package NAME VERSION INTEGRITY DIR [MEMBER] unpacks
# a package of npm, or one file of it, at DIR/package, if its content is what it was.
npm_package() {
	(cd "$4" && npm pack --silent "$1@$2" >/dev/null) || fail "$1 could not be fetched: see above"
	got=sha512-$(openssl dgst -sha512 -binary "$4/$1-$2.tgz" | openssl base64 -A)
	[ "$got" = "$3" ] || fail "$1 $2 is not what it was: $got"
	tar xzf "$4/$1-$2.tgz" -C "$4" ${5:+"$5"}
}
