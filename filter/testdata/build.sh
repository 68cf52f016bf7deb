#!/bin/sh
# Builds debug/ from a.cpp and a.s: the debug file of a.out and, with another
# build ID, a stripped copy that knows no symbol; and symbols-only/. Needs g++ and binutils.
set -eu
cd "$(dirname "$0")"
tmp=$(mktemp -d)
as a.s -o "$tmp/a.o"  # no -g: a symbol without lines
g++ -g -gdwarf-5 -O1 -fno-exceptions -fno-asynchronous-unwind-tables -nostdlib -static -ffile-prefix-map="$PWD"=/src -Wl,--build-id=0xa0a1a2a3a4a5a6a7 -Wl,-e,main -Wl,-z,noseparate-code a.cpp "$tmp/a.o" -o "$tmp/a.out"
rm -rf debug symbols-only; mkdir -p symbols-only/.build-id/a0; mkdir -p debug/.build-id/a0 debug/.build-id/b0
objcopy --only-keep-debug "$tmp/a.out" debug/.build-id/a0/a1a2a3a4a5a6a7.debug
g++ -nostdlib -static -s -Wl,--build-id=0xb0b1b2b3b4b5b6b7 -Wl,-e,bare -Wl,-z,noseparate-code a.s -o "$tmp/stripped"
cp "$tmp/stripped" debug/.build-id/b0/b1b2b3b4b5b6b7.debug
strip --strip-debug "$tmp/a.out" -o symbols-only/.build-id/a0/a1a2a3a4a5a6a7.debug  # the same, without lines
nm -S "$tmp/a.out"
rm -rf "$tmp"
