#!/bin/sh
# Rebuilds the fixtures of this folder: stripped programs with their libraries in srv/app, the debug files of one of them
# in debug, and the reports that Valgrind makes of them, with a log of where it loaded them.
# Needs a Linux x86-64 machine with gcc 12, binutils and Valgrind 3.19. Then run: UPDATE=1 go test ./valgrind -run Recorded
set -eu
cd "$(dirname "$0")"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
# One segment for headers and code, and no start files in libraries: small files.
common="-g -ffile-prefix-map=$PWD=/src -Wl,--build-id=sha1 -Wl,-z,noseparate-code -Wl,--hash-style=gnu -Wl,-z,norelro"
library="$common -shared -fPIC -nostartfiles"

g++ $library -O1 -fno-exceptions libnames.cpp -o "$out/libnames.so"
g++ $library -O1 -fno-exceptions libsignals.cpp -o "$out/libsignals.so"
g++ $common -O0 names.cpp -L"$out" -lnames -lsignals -Wl,-rpath,'$ORIGIN' -o "$out/names"
gcc $library -O1 -fno-optimize-sibling-calls liblines.c -o "$out/liblines.so"
gcc $common -O1 lines.c -L"$out" -llines -Wl,-rpath,'$ORIGIN' -o "$out/lines"

rm -rf srv debug
mkdir -p srv/app
for name in libnames.so libsignals.so names liblines.so lines; do
  objcopy --only-keep-debug --compress-debug-sections=zlib "$out/$name" "$out/$name.debug"
  strip "$out/$name"
  case $name in *lines*)
    objcopy --add-gnu-debuglink="$out/$name.debug" "$out/$name"
    id=$(readelf -n "$out/$name" | sed -n 's/.*Build ID: //p')
    dir=debug/.build-id/$(echo "$id" | cut -c1-2)
    mkdir -p "$dir"
    cp "$out/$name.debug" "$dir/$(echo "$id" | cut -c3-).debug"
    chmod 644 "$dir"/*
  esac
  cp "$out/$name" srv/app
done
rm "$out"/*names*.debug

for name in names lines; do
  DEBUGINFOD_URLS= valgrind -v -v --leak-check=no --xml=yes --xml-file="$out/$name.xml" --log-file="$out/$name.log" "$out/$name"
  sed "s,$out,/srv/app,g" "$out/$name.xml" >$name.xml
  grep -A1 'Reading syms from' "$out/$name.log" | sed "/^--$/d; s,$out,/srv/app,g" >$name.map
done
