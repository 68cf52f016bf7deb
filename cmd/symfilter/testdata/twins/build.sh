#!/bin/sh
# Makes twins.elf, a library in which two functions have one name, but not one size. Versions: gcc 12.2.0, binutils 2.40.
set -eu
cd "$(dirname "$0")"
gcc -shared -nostdlib -fPIC -O1 -g -fcf-protection=none -fdebug-prefix-map="$PWD"=/src -Wl,--build-id=none -Wl,-z,noseparate-code -Wl,-z,max-page-size=4096 \
	-o twins.elf first.c second.c
