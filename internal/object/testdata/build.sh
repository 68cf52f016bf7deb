#!/bin/sh
# Builds the small ELF files beside it from small.c: gcc, objcopy of binutils and of LLVM 19, aarch64-linux-gnu-gcc, clang 19 with lld 19.
# The files are committed; this is how they came to be.
set -eu
cd "$(dirname "$0")"
flags="-g -O1 -ffile-prefix-map=$PWD=/src"

gcc $flags -shared -nostdlib -fPIC -Wl,--build-id=sha1 -Wl,-z,noseparate-code -o whole.elf small.c
objcopy --only-keep-debug whole.elf debug.elf
objcopy --strip-all whole.elf stripped.elf
objcopy --compress-debug-sections=zlib-gnu debug.elf zdebug.elf
llvm-objcopy-19 --compress-debug-sections=zlib whole.elf zlib.elf
llvm-objcopy-19 --compress-debug-sections=zstd whole.elf zstd.elf
aarch64-linux-gnu-gcc $flags -shared -nostdlib -fPIC -Wl,--build-id=md5 -Wl,-z,noseparate-code -Wl,-z,max-page-size=4096 -o aarch64.elf small.c
clang-19 --target=armv7-linux-gnueabihf -mthumb $flags -shared -nostdlib -fPIC -fuse-ld=lld-19 -Wl,--build-id=fast -Wl,-z,max-page-size=4096 -o thumb32.elf small.c
clang-19 --target=powerpc64-linux-gnu $flags -c -o big.elf small.c
