#!/usr/bin/env bash
# start_again.sh COMMAND...: runs a program under Wine, which once in some thousand times ends one
# before it has begun: without a word, and with status 1. Such a program is started once more. One
# that has said anything is not, and all our tests begin by saying something.
output=$(mktemp)
trap 'rm -f "$output"' EXIT
"$@" 2>&1 | tee "$output"
status=${PIPESTATUS[0]}
if [ "$status" -eq 1 ] && [ ! -s "$output" ]; then
  echo "start_again.sh: Wine did not start it: $*"
  "$@"
  status=$?
fi
exit "$status"
