#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run-each.sh PROGRAM...: runs each program. Shows the output of those that fail, and fails if one of them did.
failed=0
for program in "$@"; do
	if output=$("$program" 2>&1); then
		echo "ok      ${program##*/}"
	else
		echo "FAILED  ${program##*/} ($?)"
		echo "$output"
		failed=1
	fi
done
exit $failed
