#!/bin/sh
# A sidecar without containers: a program that writes a log and rotates it, and symfilter, which follows it. They share a
# directory and nothing else. Halfway symfilter is stopped and started again, and continues after the last line that it
# printed. Its output is shown at the end: the whole log, in order, symbolized.
#
#   go build -o symfilter ./cmd/symfilter && PATH=$PWD:$PATH examples/sidecar/sidecar.sh
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
log=$root/testdata/crash.log
shared=$(mktemp -d)
pid=
trap 'if [ -n "$pid" ]; then kill "$pid" 2>/dev/null || :; fi; rm -rf "$shared"' EXIT
mkdir "$shared/logs" "$shared/state"

start() {
	symfilter --follow --state "$shared/state/checkpoint" --start-at 1h --debug-file-directory "$root/testdata/debug" "$shared/logs/*.log" >>"$shared/printed" &
	pid=$!
}

stop() {
	kill "$pid"
	wait "$pid" || [ $? -eq 143 ]
	pid=
}

start
# The first half is written while symfilter runs; it is stopped in the midst of a backtrace.
head -n 36 "$log" >"$shared/first"
"$root/examples/sidecar/app.sh" "$shared/logs" "$shared/first"
until grep -q '#2 ' "$shared/printed"; do sleep 0.1; done
stop

# The second half is written while symfilter does not run: it catches up, rotated files included.
tail -n +37 "$log" >"$shared/second"
"$root/examples/sidecar/app.sh" "$shared/logs" "$shared/second"
start
until grep -q 'restarting in' "$shared/printed"; do sleep 0.1; done
stop
cat "$shared/printed"
