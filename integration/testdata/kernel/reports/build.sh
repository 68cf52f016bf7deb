#!/bin/sh
# Usage: build.sh KIND OUT [LINUX.tar.xz]
#
# Builds a small kernel of KIND (kasan, kcsan, arm64, arm or riscv) that reports errors of each kind, boots it under QEMU
# and writes to OUT: the log (KIND.log) and the kernel, reduced to the functions in it (KIND.vmlinux.xz), for kasan also the
# module (kasan.reports.ko.xz). The files here were made so. The sources are those of Debian's package linux-source-6.1.
# A kind takes 10 minutes on two processors and 1 GB. It needs gcc, clang-19, lld-19, llvm-19, flex, bison, bc, libelf-dev, cpio,
# gcc-aarch64-linux-gnu, gcc-arm-linux-gnueabihf and QEMU.
set -eu
kind=$1
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$2/$kind"
out=$(cd "$2" && pwd)
sources=${3:-/usr/src/linux-source-6.1.tar.xz}

cross=
llvm=
smp=2
case $kind in
# The table of processors of this machine has one of each socket.
kasan) arch=x86_64 image=bzImage machine='qemu-system-x86_64 -m 512' console=ttyS0 smp=2,sockets=2 ;;
kcsan) arch=x86_64 image=bzImage machine='qemu-system-x86_64 -m 512' console=ttyS0 smp=2,sockets=2 llvm=-19 ;;
arm64) arch=arm64 image=Image machine='qemu-system-aarch64 -M virt -cpu cortex-a57 -m 512' console=ttyAMA0 cross=aarch64-linux-gnu- ;;
arm) arch=arm image=zImage machine='qemu-system-arm -M virt -cpu cortex-a15 -m 512' console=ttyAMA0 cross=arm-linux-gnueabihf- ;;
riscv) arch=riscv image=Image machine='qemu-system-riscv64 -M virt -m 512' console=ttyS0 llvm=-19 ;;
*)
  echo "unknown kind: $kind" >&2
  exit 2
  ;;
esac

tree=$out/linux
if [ ! -e "$tree/.unpacked" ]; then
  mkdir -p "$tree"
  tar xf "$sources" -C "$tree" --strip-components=1
  # shellcheck disable=SC2016 # for make
  echo 'obj-$(REPORTS) += reports.o' >>"$tree/init/Makefile"
  touch "$tree/.unpacked"
fi
cmp -s "$here/reports.c" "$tree/init/reports.c" || cp "$here/reports.c" "$tree/init/"

build=$out/$kind
paths="-fdebug-prefix-map=$tree=/src -fdebug-prefix-map=$build=/build"
make_kernel() {
  set -- "$@" ARCH="$arch" O="$build/obj" KCFLAGS="$paths" KAFLAGS="$paths"
  [ -z "$cross" ] || set -- "$@" CROSS_COMPILE="$cross"
  [ -z "$llvm" ] || set -- "$@" LLVM="$llvm"
  [ "$kind" = kasan ] || set -- "$@" REPORTS=y
  KBUILD_BUILD_TIMESTAMP='2026-11-20' KBUILD_BUILD_USER=bank KBUILD_BUILD_HOST=bank KBUILD_BUILD_VERSION=1 \
    nice -n 10 make -s -C "$tree" -j"$(nproc)" "$@"
}
mkdir -p "$build/obj"
cat "$here/config" "$here/config-$kind" >"$build/wanted"
if ! cmp -s "$build/wanted" "$build/obj/wanted"; then
  make_kernel tinyconfig
  cat "$build/wanted" >>"$build/obj/.config"
  make_kernel olddefconfig
  cp "$build/wanted" "$build/obj/wanted"
fi
grep '^CONFIG' "$build/wanted" | while read -r line; do
  grep -qxF "$line" "$build/obj/.config" || echo "not in .config: $line" >&2
done
make_kernel "$image" vmlinux
if [ "$kind" = kasan ]; then
  make_kernel modules_prepare modules
  mkdir -p "$build/module" "$build/files"
  cp "$here/reports.c" "$build/module"
  # shellcheck disable=SC2016 # for make
  printf '%s\n' 'obj-m := reports.o' 'ccflags-y := -g1 -fmacro-prefix-map=$(src)/=' >"$build/module/Makefile"
  make_kernel M="$build/module" KBUILD_MODPOST_WARN=1 modules
  cp "$build/module/reports.ko" "$build"
  cc -static -O2 -o "$build/files/init" "$here/init.c"
  cp "$build/reports.ko" "$build/files"
  (cd "$build/files" && find . | cpio -o -H newc --quiet) >"$build/initramfs"
  set -- -initrd "$build/initramfs"
else
  set --
fi
cp "$build/obj/vmlinux" "$build"

# shellcheck disable=SC2086 # options
timeout 600 $machine -accel tcg -smp "$smp" -nodefaults -display none -no-reboot -serial file:"$build/console" \
  -kernel "$build/obj/arch/$(echo "$arch" | sed s/x86_64/x86/)/boot/$image" "$@" \
  -append "console=$console loglevel=8 kasan_multi_shot watchdog_thresh=2 panic=-1" || echo "qemu ends with $?" >&2

# The fixture: the log, and files with the debug information of the functions in it.
tr -d '\r' <"$build/console" | sed "s|$build/module/||" >"$out/$kind.log"
go run "$here/reduce.go" "$build/vmlinux" "$out/$kind.log" "$build/reduced" 2>"$build/reduce.log" || { cat "$build/reduce.log" >&2; exit 1; }
xz --lzma2=preset=9e,pb=0,lc=4 -c "$build/reduced" >"$out/$kind.vmlinux.xz"
[ "$kind" != kasan ] || xz -9e -c "$build/reports.ko" >"$out/$kind.reports.ko.xz"
