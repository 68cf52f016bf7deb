#!/bin/sh
# Builds the programs of the kit from integration/testdata/twin, runs them, and writes the logs and the truth. It needs
# g++, gdb, strace, valgrind and llvm-symbolizer-19. @DIR@ in a log is the folder of the programs.
set -eu
cd "$(dirname "$0")"
kit=$PWD
source=$(cd ../../integration/testdata/twin && pwd)
run=$(mktemp -d) # the stripped programs, which print the logs
trap 'rm -rf "$run"' EXIT
rm -rf programs other truth logs
mkdir programs other truth logs

compile() { # FOLDER FLAGS...
  folder=$kit/$1
  shift
  (cd "$source" && g++ -gz=zlib -Wl,--build-id -fno-omit-frame-pointer "-ffile-prefix-map=$source=/src/shop" "-L$folder" "-Wl,-rpath,\$ORIGIN" "$@")
}
build() { # FOLDER FLAGS...
  to=$1
  shift
  compile "$to" "$@" -g -fPIC -shared ledger.cc -o "$kit/$to/libledger.so"
  compile "$to" "$@" -g1 -rdynamic emit.cc -o "$kit/$to/emit" -lledger
  compile "$to" "$@" -g1 traces.cc -o "$kit/$to/traces" -lledger
  compile "$to" "$@" -g backtrace.cc -o "$kit/$to/backtrace" -lledger
  compile "$to" "$@" -g fault.cc -o "$kit/$to/fault" -lledger
  compile "$to" "$@" -g -fsanitize=address fault.cc -o "$kit/$to/fault-asan" -lledger
}
build programs -O2
build other -O1 -fno-inline # the same sources: another build
for file in programs/*; do
  strip -o "$run/${file##*/}" "$file"
done

truth() { # PROGRAM BREAKPOINT ARGS...
  program=$1 stop=$2
  shift 2
  STOP=$stop TRUTH=$kit/truth/$program ASAN_OPTIONS=handle_segv=0 gdb -nx -batch -x truth.py --args "programs/$program" "$@" >&2
  test -s "truth/$program"
}
truth emit backtrace llvm
truth traces _Unwind_Backtrace glog
truth backtrace backtrace
truth fault ''
truth fault-asan ''

record() { # NAME COMMAND...
  name=$1
  shift
  (cd "$run" && "$@" 2>&1 || true) | sed "s|$run|@DIR@|g" >"logs/$name"
}
for form in android chromium firefox llvm haproxy bpftrace bcc cuda node abrt breakpad coredump-243; do
  record "$form" "$run/emit" "$form"
done
for form in glog absl folly rust stdtrace boost envoy; do
  record "$form" "$run/traces" "$form" maps-before
done
for form in glog-paths pytorch backward cpptrace seastar-id; do
  record "$form" "$run/traces" "$form"
done
record glibc "$run/backtrace"
record gdb gdb -nx -batch -ex 'set debuginfod enabled off' -ex run -ex bt -ex 'info proc mappings' "$run/fault"
record strace strace -k -e trace=none "$run/fault"
record valgrind valgrind "$run/fault"
record asan env ASAN_OPTIONS=symbolize=0 "$run/fault-asan"
