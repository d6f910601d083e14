#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fuzz.sh TARGET...: runs libFuzzer targets for FUZZ_SECONDS (1 or more) each. Inputs that are not in the corpus go
# to the folder TARGET.found. An input that crashes the target is kept there, and the script names the folder.
cd "$(dirname "$0")/.." || exit 1
case ${FUZZ_SECONDS:-0} in
0 | *[!0-9]*) # libFuzzer takes 0 for "for ever"
	echo "fuzz.sh: FUZZ_SECONDS must be a whole number of seconds, 1 or more" >&2
	exit 1
	;;
esac
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
