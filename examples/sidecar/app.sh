#!/bin/sh
# Acts as a program that writes a log and rotates it: app.sh DIR FILE writes the lines of FILE to DIR/app.log, a few at a
# time. Every ten lines app.log becomes app.log.1, that app.log.2, and so on up to app.log.5.
set -eu
dir=$1 n=0
mkdir -p "$dir"
while IFS= read -r line; do
	printf '%s\n' "$line" >>"$dir/app.log"
	n=$((n + 1))
	if [ $((n % 10)) -eq 0 ]; then
		for i in 4 3 2 1; do
			if [ -e "$dir/app.log.$i" ]; then mv "$dir/app.log.$i" "$dir/app.log.$((i + 1))"; fi
		done
		mv "$dir/app.log" "$dir/app.log.1"
	fi
	if [ $((n % 3)) -eq 0 ]; then sleep "${PAUSE:-0.1}"; fi
done <"$2"
