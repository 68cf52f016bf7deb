# Builds the programs for cases.txt in the current folder, from the sources in the folder $1.
set -e
cp "$1"/*.cc "$1"/*.c "$1"/*.s .
mkdir -p sub tree/.build-id "a folder"
cp calls.cc sub/inner.cc
clang="clang-19 -fuse-ld=lld-19 -nostdlib -Wl,-e,main -fno-asynchronous-unwind-tables"
$clang -g -O1 -static calls.cc -o calls
$clang -g -O1 -gdwarf-4 -fdebug-info-for-profiling -static sub/inner.cc -o calls4
$clang -g -O1 -fdebug-prefix-map="$PWD"=. -static sub/inner.cc -o calls.map
$clang -gline-tables-only -O2 -shared -fPIC calls.cc -o calls.so
$clang -O1 -static calls.cc -o calls.bare
$clang -g -O1 -gembed-source -static calls.cc -o calls.embed
$clang -g -O1 -gz -static calls.cc -o calls.z
$clang -g -O1 -gsplit-dwarf -static calls.cc -o split
$clang -g -O1 -gsplit-dwarf -fsplit-dwarf-inlining -static calls.cc -o split.inlining
$clang -g -O1 -gsplit-dwarf=single -static calls.cc -o split.single
llvm-dwp-19 -e split -o split.dwp
cp split split.alone
clang-19 -g -O1 -c calls.cc -o calls.o
clang-19 -g -O1 -ffunction-sections -c calls.cc -o sections.o
$clang -g -O0 -static data.c -o data
clang-19 -g -O0 -c data.c -o data.o
clang-19 -g -c lines.s -o lines.o
clang-19 -c lines.s -o lines.plain.o
ld.lld-19 lines.o -o lines
ld.lld-19 lines.plain.o -o lines.plain
$clang -g -O1 -static part.c part2.c -o parts
$clang -g -O1 -ffunction-sections -Wl,--gc-sections -static part.c part2.c -o parts.gc
clang-19 --target=armv7-none-eabi -mthumb -g -O1 -c part2.c -o thumb.o
clang-19 --target=aarch64-none-elf -g -O1 -c part2.c -o arm64.o
clang-19 --target=powerpc64le-linux-gnu -g -O1 -c part2.c -o ppc.o
clang-19 --target=riscv64-none-elf -g -O1 -c part2.c -o riscv.o
$clang -g -O1 -static -Wl,--build-id=0x0123456789abcdef0123456789abcdef01234567 calls.cc -o id
mkdir -p tree/.build-id/01
llvm-objcopy-19 --only-keep-debug id tree/.build-id/01/23456789abcdef0123456789abcdef01234567.debug
llvm-strip-19 id -o id.bare
llvm-objcopy-19 --only-keep-debug calls linked.debug
llvm-objcopy-19 --strip-all --add-gnu-debuglink=linked.debug calls linked
mkdir -p .debug && mv linked.debug .debug/
llvm-ar-19 rc parts.a calls.o lines.o
cp calls "a folder/calls"
head -c 100 calls >short
: >nothing
echo text >text
