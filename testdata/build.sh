#!/bin/sh
# Rebuilds the fixtures of this folder: debug/, asan.log, crash.log and clang-crash.log.
# Needs a Linux x86-64 machine with clang-19, its sanitizers (libclang-rt-19-dev), lld-19, llvm-19 (llvm-objcopy-19) and
# setarch (util-linux).
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

asan=$(dirname "$(clang-19 -print-file-name=libclang_rt.asan-x86_64.so)")
clang++-19 -std=c++20 -g -O1 -fno-exceptions -fno-rtti -fsanitize=address -shared-libasan \
  -ffile-prefix-map="$PWD"=/src -fdebug-compilation-dir=/src \
  --ld-path=ld.lld-19 -Wl,--build-id=sha1 -Wl,-rpath,"$asan" server/server.cc -o "$out/server"

rm -rf debug
for name in libcrashlog.so libledger.so inventory server; do
  id=$(llvm-readelf-19 --notes "$out/$name" | sed -n 's/.*Build ID: //p')
  dir=debug/.build-id/$(echo "$id" | cut -c1-2)
  mkdir -p "$dir"
  llvm-objcopy-19 --only-keep-debug "$out/$name" "$dir/$(echo "$id" | cut -c3-).debug"
  chmod 644 "$dir"/*
  llvm-objcopy-19 --strip-all "$out/$name"
done

# The program prints its crash itself, from stripped files.
setarch -R "$out/inventory" >crash.log || [ $? = 139 ]

# The report of AddressSanitizer, without the dump of its memory. It names the folder in which the program ran.
ASAN_OPTIONS=symbolize=0 setarch -R "$out/server" 2>&1 | sed "s#$out#/opt/shop#g; /^Shadow bytes/,\$d" >asan.log

# LLVM's tools print addresses truncated to 32 bits, so that modules loaded more than 4 GiB apart may overlap: repeated
# until they do, one run in twenty or so.
overlapping() { # LOG: does a map begin inside another?
  sed -n 's/^{{{mmap:\(0x[0-9a-f]*\):\(0x[0-9a-f]*\):.*/\1 \2/p' "$1" | sort | {
    end=0
    while read -r start size; do
      [ $((start)) -ge $((end)) ] || exit 0
      end=$((start + size))
    done
    exit 1
  }
}
until
  (cd clang && LLVM_ENABLE_SYMBOLIZER_MARKUP=1 clang-19 -fsyntax-only -fno-crash-diagnostics crash.c) >clang-crash.log 2>&1 || true
  overlapping clang-crash.log
do :; done
