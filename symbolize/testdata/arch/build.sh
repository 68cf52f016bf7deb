#!/bin/sh
# Builds the ELF files beside it from prog.c, one for each architecture: clang 19 and lld 19, without any headers or libraries.
# The files are committed; this is how they came to be.
set -eu
cd "$(dirname "$0")"

build() {
	name=$1
	shift
	clang-19 "$@" -O2 -g -gdwarf-5 -funwind-tables -fPIC -ffile-prefix-map="$PWD=/src" -c -o "$name.o" prog.c
	case $name in
	ppc64le) emulation=elf64lppc ;;
	*) emulation= ;;
	esac
	ld.lld-19 ${emulation:+-m $emulation} -shared --build-id=fast -z max-page-size=4096 -z noseparate-code --hash-style=sysv -o "$name.elf" "$name.o"
	llvm-objcopy-19 --remove-section=.comment "$name.elf"
	rm "$name.o"
}

build x86_64 --target=x86_64-linux-gnu
build i386 --target=i386-linux-gnu
build arm --target=armv7-linux-gnueabihf -marm
build thumb --target=armv7-linux-gnueabihf -mthumb
build aarch64 --target=aarch64-linux-gnu
build riscv64 --target=riscv64-linux-gnu -march=rv64gc -mno-relax
build ppc64le --target=powerpc64le-linux-gnu
build s390x --target=s390x-linux-gnu
build mips64 --target=mips64-linux-gnuabi64
build mips64el --target=mips64el-linux-gnuabi64
build loongarch64 --target=loongarch64-linux-gnu -mno-relax
