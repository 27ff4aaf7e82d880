#!/bin/sh
# SPDX-License-Identifier: Apache-2.0

# Fuzzes every target of the project for some time each, or with so many inputs: fuzz.sh [30s or 5000x], or "60m all" for all of them
# together. Where a run must not fail by chance it is inputs: go test now and then takes the end of its own time for a failure. A target
# that fails does not stop the others: go test leaves the input in the package's testdata/fuzz, as a seed for every later test. What it
# finds that is merely new stays in $(go env GOCACHE)/fuzz, from which the next run goes on.
set -eu
cd "$(dirname "$0")/.."
time=${1:-30s}
list=$(grep -rE '^func Fuzz' --include='*_test.go' . | sed -nE 's/^(.*)\/[^\/]*:func (Fuzz[A-Za-z0-9_]*)\(.*/\1 \2/p' | sort)
if [ "${2:-}" = all ]; then
	time=$((${time%m} * 60 / $(echo "$list" | wc -l)))s
fi
failed=""
while read -r package target; do
	echo "== $package $target"
	# minimising what is merely interesting would take most of the time
	go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 20x "$package" </dev/null || failed="$failed $package:$target"
done <<LIST
$list
LIST
if [ -n "$failed" ]; then
	echo "failed:$failed" >&2
	exit 1
fi
