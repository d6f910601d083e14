#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fuzz.sh TARGET...: runs libFuzzer targets for FUZZ_SECONDS each. What they find beyond the corpus
# goes to a folder beside the target; an input that crashes it is kept there and named.
cd "$(dirname "$0")/.." || exit 1
failed=0
for target in "$@"; do
	name=${target##*/}
	corpus=tests/fuzz/corpus/${name#fuzz_}
	found=$target.found
	mkdir -p "$found/corpus" "$corpus"
	if "$target" -max_total_time="$FUZZ_SECONDS" -timeout=10 -rss_limit_mb=2048 \
		-print_final_stats=1 -artifact_prefix="$found/" "$found/corpus" "$corpus" \
		>"$found/log" 2>&1; then
		inputs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$found/log")
		echo "ok      $name: $inputs inputs in $FUZZ_SECONDS s"
	else
		tail -n 60 "$found/log"
		echo "FAILED  $name: the input is in $found/; add it to $corpus/"
		failed=1
	fi
done
exit $failed
