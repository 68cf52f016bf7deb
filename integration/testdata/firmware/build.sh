#!/bin/sh
# Usage: build.sh FOLDER
#
# Builds the firmware of this folder into FOLDER: cortexm.elf, riscv.elf, aarch64.elf, mips.elf and avr.elf, and, for
# recorded/, their logs in QEMU. Needs gcc-arm-none-eabi, gcc-riscv64-unknown-elf, clang-19, lld-19, gcc-avr, avr-libc,
# qemu-system-arm, qemu-system-mips and qemu-system-misc.
set -eu
out=$(cd "$1" && pwd)
cd "$(dirname "$0")"
compile() { # COMPILER ARGUMENT...
  "$@" -g -O2 -ffreestanding -nostdlib -fno-omit-frame-pointer "-ffile-prefix-map=$PWD=/src" ${FIRMWARE_FLAGS-}
}
compile arm-none-eabi-gcc -mcpu=cortex-m3 -mthumb -T cortexm.ld -o "$out/cortexm.elf" app.c dumps.c cortexm.c
compile riscv64-unknown-elf-gcc -march=rv32imac_zicsr -mabi=ilp32 -mcmodel=medany -Wl,--build-id,--no-warn-rwx-segments -T riscv.ld \
  -o "$out/riscv.elf" app.c dumps.c riscv.c
compile clang-19 --target=aarch64-none-elf -c -o "$out/app.o" app.c
compile clang-19 --target=aarch64-none-elf -c -o "$out/port.o" aarch64.c
ld.lld-19 -z max-page-size=4096 -T aarch64.ld -o "$out/aarch64.elf" "$out/app.o" "$out/port.o"
compile clang-19 --target=mips-none-elf -march=mips32r2 -fno-pic -mno-abicalls -G0 -c -o "$out/app.o" app.c
compile clang-19 --target=mips-none-elf -march=mips32r2 -fno-pic -mno-abicalls -G0 -c -o "$out/port.o" mips.c
ld.lld-19 -z max-page-size=4096 -T mips.ld -o "$out/mips.elf" "$out/app.o" "$out/port.o"
rm "$out/app.o" "$out/port.o"
avr-gcc -mmcu=atmega1280 -gdwarf-4 -gno-record-gcc-switches -O2 -ffreestanding "-fdebug-prefix-map=$PWD=/src" ${FIRMWARE_FLAGS-} -o "$out/avr.elf" app.c avr.c

qemu-system-arm -M mps2-an385 -nographic -semihosting -kernel "$out/cortexm.elf" </dev/null >"$out/cortexm.log"
qemu-system-riscv32 -M virt -bios none -nographic -kernel "$out/riscv.elf" </dev/null >"$out/riscv.log"
qemu-system-aarch64 -M virt -cpu cortex-a53 -nographic -semihosting -kernel "$out/aarch64.elf" </dev/null >"$out/aarch64.log"
qemu-system-mips -M malta -no-reboot -nographic -kernel "$out/mips.elf" </dev/null >"$out/mips.log"
# the firmware cannot end this one: timeout does, with status 124
timeout 3 qemu-system-avr -M arduino-mega -nographic -bios "$out/avr.elf" </dev/null >"$out/avr.log" || [ $? -eq 124 ]
