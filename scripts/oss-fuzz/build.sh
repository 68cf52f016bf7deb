#!/bin/bash -eu
# Builds each fuzz target for OSS-Fuzz, with the command of OSS-Fuzz's image that makes a fuzzer from a Go test. It finds targets by
# their names. SRC is the folder with the clone.
set -o pipefail
for module in . collector; do
  cd "$SRC/symfilter/$module"
  go list -find -f '{{$p := .}}{{range .TestGoFiles}}{{$p.ImportPath}} {{$p.Dir}}/{{.}}
{{end}}{{range .XTestGoFiles}}{{$p.ImportPath}} {{$p.Dir}}/{{.}}
{{end}}' ./... | while read -r package file; do
    [ -n "$package" ] || continue
    for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*testing\.F) {$/\1/p' "$file"); do
      name=${package#github.com/symfilter/symfilter}
      name=${name#/}
      compile_native_go_fuzzer_v2 "$package" "$target" "${name//\//_}_$target" </dev/null
    done
  done
done
