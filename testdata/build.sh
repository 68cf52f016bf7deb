#!/bin/sh
# Rebuilds the fixtures of this folder: debug/, crash.log and clang-crash.log.
# Needs a Linux x86-64 machine with clang-19, lld-19, llvm-19 (llvm-objcopy-19) and setarch (util-linux).
# The debug files are the same for the same compiler; the logs hold the time of day and the libc of the machine.
set -eu
cd "$(dirname "$0")"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

compile() { # NAME SOURCE FLAGS...: one linked file with symbols, under $out
  name=$1 source=$2
  shift 2
  clang-19 -std=c++20 -g -O2 -fno-exceptions -fno-rtti -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer \
    -ffile-prefix-map="$PWD"=/src -fdebug-compilation-dir=/src \
    --ld-path=ld.lld-19 -Wl,--build-id=sha1 -Wl,-rpath,'$ORIGIN' -nostdlib++ \
    "inventory/$source" -o "$out/$name" "$@"
}
compile libcrashlog.so crashlog.cc -fPIC -shared -Wl,-soname,libcrashlog.so
compile libledger.so ledger.cc -fPIC -shared -Wl,-soname,libledger.so -L"$out" -lcrashlog
compile inventory main.cc -L"$out" -lledger -lcrashlog

rm -rf debug
for name in libcrashlog.so libledger.so inventory; do
  id=$(llvm-readelf-19 --notes "$out/$name" | sed -n 's/.*Build ID: //p')
  dir=debug/.build-id/$(echo "$id" | cut -c1-2)
  mkdir -p "$dir"
  llvm-objcopy-19 --only-keep-debug "$out/$name" "$dir/$(echo "$id" | cut -c3-).debug"
  chmod 644 "$dir"/*
  llvm-objcopy-19 --strip-all "$out/$name"
done

# The program prints its crash itself, from stripped files.
setarch -R "$out/inventory" >crash.log || [ $? = 139 ]
