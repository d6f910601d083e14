#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run-corpus.sh TARGET...: runs each fuzz target on every file of its corpus, tests/fuzz/corpus/<name without fuzz_>/.
cd "$(dirname "$0")/.." || exit 1
failed=0
for target in "$@"; do
	name=${target##*/}
	if output=$("$target" "tests/fuzz/corpus/${name#fuzz_}" 2>&1); then
		echo "ok      $name: $(echo "$output" | tail -n 1)"
	else
		echo "FAILED  $name ($?)"
		echo "$output"
		failed=1
	fi
done
exit $failed
