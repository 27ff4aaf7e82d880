#!/bin/sh
# SPDX-License-Identifier: Apache-2.0

# Fuzzes every target of the project for some time each, or with so many inputs: fuzz.sh [30s or 5000x]. Where a run must not fail by
# chance it is inputs: go test now and then takes the end of its own time for a failure.
set -eu
cd "$(dirname "$0")/.."
time=${1:-30s}
grep -rlE '^func Fuzz' --include='*_test.go' . | sort | while read -r file; do
	package=./$(dirname "${file#./}")
	for target in $(sed -nE 's/^func (Fuzz[A-Za-z0-9_]*)\(.*/\1/p' "$file"); do
		echo "== $package $target"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 20x "$package" # minimising what is merely interesting would take most of the time
	done
done
