#!/bin/sh
# Usage: build.sh FOLDER
#
# Builds the firmware of this folder into FOLDER: cortexm.elf and riscv.elf, and, for recorded/, their logs in QEMU.
# Needs gcc-arm-none-eabi, gcc-riscv64-unknown-elf, qemu-system-arm and qemu-system-misc.
set -eu
out=$(cd "$1" && pwd)
cd "$(dirname "$0")"
compile() { # COMPILER ARGUMENT...
  "$@" -g -O2 -ffreestanding -nostdlib -fno-omit-frame-pointer "-ffile-prefix-map=$PWD=/src" ${FIRMWARE_FLAGS-}
}
compile arm-none-eabi-gcc -mcpu=cortex-m3 -mthumb -T cortexm.ld -o "$out/cortexm.elf" app.c dumps.c cortexm.c
compile riscv64-unknown-elf-gcc -march=rv32imac_zicsr -mabi=ilp32 -mcmodel=medany -Wl,--build-id,--no-warn-rwx-segments -T riscv.ld \
  -o "$out/riscv.elf" app.c dumps.c riscv.c
qemu-system-arm -M mps2-an385 -nographic -semihosting -kernel "$out/cortexm.elf" </dev/null >"$out/cortexm.log"
qemu-system-riscv32 -M virt -bios none -nographic -kernel "$out/riscv.elf" </dev/null >"$out/riscv.log"
