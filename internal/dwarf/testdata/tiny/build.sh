#!/bin/sh -eu
# Builds the fixtures beside this file, with gcc 12 and clang 19. Then run: go test ./internal/dwarf -run Tiny -update
cd "$(dirname "$0")"
common="-ffunction-sections -fno-asynchronous-unwind-tables -nostdlib -static -ffile-prefix-map=$PWD=/src -Wl,--gc-sections,--build-id=none"
gcc $common -O2 -gdwarf-5 -fno-pie -no-pie tiny.c -o gcc5.elf
gcc $common -O2 -gdwarf-5 -gdwarf64 -fno-pie -no-pie tiny.c -o gcc5-64bit.elf
gcc $common -O1 -gdwarf-4 -fno-pie -no-pie tiny.c -o gcc4.elf
gcc $common -O2 -gdwarf-3 -m32 -fno-pie -no-pie tiny.c -o gcc3-i386.elf
gcc $common -O2 -gdwarf-2 -fno-pie -no-pie tiny.c -o gcc2.elf
g++ $common -O2 -gdwarf-2 -gstrict-dwarf -fno-pie -no-pie -Wl,-e,main cold.cc -o gcc2-cold.elf
objcopy -N cold.cc gcc2-cold.elf # llvm-symbolizer gives the file of a symbol if the debug information has none
clang-19 $common -fuse-ld=lld -O2 -gdwarf-5 tiny.c -o clang5.elf
clang-19 $common -fuse-ld=lld -O2 -gdwarf-4 -gsplit-dwarf -fsplit-dwarf-inlining tiny.c -o clang4-split.elf
clang-19 $common -fuse-ld=lld -O2 -gdwarf-5 --target=mips-linux-gnu -Wl,-e,_start -fno-pic -mno-abicalls tiny.c -o clang5-mips.elf
clang-19 $common -fuse-ld=lld -O2 -gdwarf-4 -gdwarf-aranges --target=powerpc64-linux-gnu -mabi=elfv2 tiny.c -o clang4-ppc64.elf
rm -f *.dwo
