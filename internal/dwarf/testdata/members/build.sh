#!/bin/sh -eu
# Builds the small ELF files beside this file, which tests damage, with gcc 12 and clang 19.
cd "$(dirname "$0")"
common="-ffreestanding -nostdlib -static -O1 -fno-asynchronous-unwind-tables -ffile-prefix-map=$PWD=/src -Wl,-e,main,--build-id=none"
gcc $common -no-pie -gdwarf-5 plain.c -o gcc5.elf
gcc $common -no-pie -gdwarf-4 -fdebug-types-section plain.c -o gcc4-types.elf
gcc $common -no-pie -gdwarf-2 -gstrict-dwarf plain.c -o gcc2.elf
clang-19 $common -fuse-ld=lld -gdwarf-5 plain.c -o clang5.elf
clang-19 $common -fuse-ld=lld -gdwarf-5 -fdebug-types-section --target=i386-linux-gnu plain.c -o clang5-i386.elf
clang-19 $common -fuse-ld=lld -gdwarf-4 --target=powerpc64-linux-gnu -mabi=elfv2 plain.c -o clang4-ppc64.elf
