#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fuzz.sh TARGET...: runs libFuzzer targets for FUZZ_SECONDS each. What they find beyond the corpus
# goes to a folder beside the target; an input that crashes it is kept there and named.
cd "$(dirname "$0")/.." || exit 1
failed=0
for target in "$@"; do
	name=${target##*/}
	found=$target.found
	mkdir -p "$found/corpus" "tests/fuzz/corpus/${name#fuzz_}"
	echo "fuzzing $name for $FUZZ_SECONDS s"
	if ! "$target" -max_total_time="$FUZZ_SECONDS" -timeout=10 -rss_limit_mb=2048 -verbosity=0 \
		-print_final_stats=1 -artifact_prefix="$found/" "$found/corpus" \
		"tests/fuzz/corpus/${name#fuzz_}"; then
		echo "FAILED  $name: the input is in $found/; add it to tests/fuzz/corpus/${name#fuzz_}/"
		failed=1
	fi
done
exit $failed
