#!/usr/bin/env bash
# Runs the proofs whose figures docs/reliability.md shows, and writes the figures into
# docs/results/proof.csv; then `cd bench && go run . -document ../docs/reliability.md`
# fills the table:
#
#     DYNAHOLD_PROOF=full docs/proof.sh
#
# A test that fails ends it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

out=docs/results/proof.csv
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# run PATTERN PACKAGES [FLAG...]: what the tests say.
run() {
	local pattern=$1 packages=$2
	shift 2
	go test -count=1 -timeout 60m -v -run "$pattern" $packages "$@" >"$log" || { cat "$log" >&2; exit 1; }
}

total() { awk '{ n += $1 } END { print n }'; }

# sum WORDS: the sum of the numbers before these words, in all lines of the log that
# say "verdicts".
sum() { sed -n "/ verdicts, /s/.*[^0-9]\([0-9]\+\) $1.*/\1/p" "$log" | total; }

# models NAME PACKAGES: all states that were searched, and how many planted faults were
# found; a fault that is not found fails the test.
models() {
	run '^TestModel' "$2"
	local states found
	states=$(grep -v 'found within\|in all' "$log" | sed -n 's/.*: \([0-9]\+\) states.*/\1/p' | total)
	found=$(grep -c 'found within' "$log")
	echo "models,\"$1\",,,,,,$states,$found"
}

{
	echo "# DYNAHOLD_PROOF=${DYNAHOLD_PROOF:-} docs/proof.sh; commit $(git rev-parse --short HEAD)"
	echo "scenario,contender,requests,faults,verdicts,wrong,unknown,states,planted faults found"
	run FaultedUpdates ./internal/suite/faults -rounds=4
	echo "faults,\"changes, a quarter of all requests broken\",$(sum requests),$(sum faults),$(sum verdicts),$(sum wrong),$(sum unknown),,"
	models "locks, queues on items, versions, operation ids, transactions" "./internal/protocol ./internal/lockless"
	models "queues of tickets" ./ticket
	models "permits and jobs" ./internal/resources
	models "wake-up rows" ./jobs
	models "delegated commands" ./internal/delegation
} >"$out.new"
mv "$out.new" "$out"
