#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# get-redis.sh makes sure that there is a redis-server or a valkey-server, which the tests start on ports of their own. As root
# on Debian or Ubuntu it installs one; else it says what to install.
set -eu

if command -v redis-server >/dev/null || command -v valkey-server >/dev/null; then
	exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
	apt-get install -y -qq --no-install-recommends redis-server >/dev/null 2>&1 || {
		apt-get update -qq
		apt-get install -y -qq --no-install-recommends redis-server >/dev/null
	}
	exit 0
fi
echo "get-redis: the tests need redis-server (Debian, Ubuntu: apt-get install redis-server; macOS: brew install redis)" >&2
exit 1
