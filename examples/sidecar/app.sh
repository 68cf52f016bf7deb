#!/bin/sh
# Stands for a program that writes a log and rotates it: app.sh DIR FILE writes the lines of FILE to DIR/app.log, a few at
# a time. Every ten lines app.log becomes app.log.1, and that app.log.2.
set -eu
dir=$1 n=0
mkdir -p "$dir"
while IFS= read -r line; do
	printf '%s\n' "$line" >>"$dir/app.log"
	n=$((n + 1))
	if [ $((n % 10)) -eq 0 ]; then
		if [ -e "$dir/app.log.1" ]; then mv "$dir/app.log.1" "$dir/app.log.2"; fi
		mv "$dir/app.log" "$dir/app.log.1"
	fi
	if [ $((n % 3)) -eq 0 ]; then sleep "${PAUSE:-0.1}"; fi
done <"$2"
