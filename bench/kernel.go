//go:build linux

package main

import (
	"context"
	"debug/elf"
	"math/rand/v2"
	"slices"
)

// Names of rows with messages of Linux.
const (
	hotOopses   = "100 k hot frames of oopses, `--image vmlinux`"
	oneOops     = "first frame of an oops, `--image vmlinux`"
	quietKernel = "kernel log, 1 GiB, a third with 0x"
	plainText   = "plain text, 1 GiB"
)

// oopses returns a function that writes n frames of oopses, and a log with the same addresses
// as elements. distinct bounds the number of different addresses.
func oopses(n, distinct int) func(b *binaries, path string) error {
	return func(b *binaries, path string) error {
		c, err := b.code(vmlinux, 0)
		if err != nil {
			return err
		}
		addrs := make([]uint64, 0, len(c.functions))
		names := make(map[string]int)
		for _, f := range c.functions {
			addrs = append(addrs, f.Value)
			names[f.Name]++
		}
		slices.Sort(addrs)
		type frame struct {
			symbol       elf.Symbol
			offset, size uint64
		}
		var chosen []frame
		for len(chosen) < distinct {
			f := c.functions[c.rand.IntN(len(c.functions))]
			next, _ := slices.BinarySearch(addrs, f.Value+1)
			if next == len(addrs) || names[f.Name] > 1 || f.Size < 2 || addrs[next]-f.Value-f.Size >= 16 {
				continue // its size in the log is unknown, or its name is not unique
			}
			chosen = append(chosen, frame{f, 1 + c.rand.Uint64N(f.Size-1), addrs[next] - f.Value})
		}
		order := make([]frame, n)
		for i := range order {
			order[i] = chosen[c.rand.IntN(len(chosen))]
		}
		const header = "[   12.345678] CPU: 0 PID: 71 Comm: insmod Not tainted 6.1.0-56-amd64 #1\n[   12.345678] Call Trace:\n"
		err = create(path+markupSuffix, func(w *logWriter) {
			c.context(w)
			for i, f := range order {
				if i%depth == 0 {
					w.printf(header)
				}
				w.printf("[   12.345678]  {{{bt:%d:%#x:ra}}}\n", i%depth, f.symbol.Value+f.offset)
			}
		})
		if err != nil {
			return err
		}
		return create(path, func(w *logWriter) {
			for i, f := range order {
				if i%depth == 0 {
					w.printf(header)
				}
				w.printf("[   12.345678]  %s+%#x/%#x\n", f.symbol.Name, f.offset, f.size)
			}
		})
	}
}

// kernelLines are messages of Linux without a crash. One in three has hexadecimal numbers, mostly
// in messages that are typical of a boot. Random numbers make each line different.
var kernelLines = []string{
	"BIOS-e820: [mem 0x%016x-0x%016x] usable",
	"audit: type=1400 audit(%d.%d:2): apparmor=\"STATUS\" operation=\"profile_load\" profile=\"unconfined\" name=\"lsb_release\"",
	"usb 1-%d: new high-speed USB device number %d using xhci_hcd",
	"ACPI: SSDT 0x%016X %06X (v02 PmRef  Cpu0Ist  00003000 INTL 20160422)",
	"EXT4-fs (sda%d): mounted filesystem with ordered data mode. Quota mode: none. (%d)",
	"IPv6: ADDRCONF(NETDEV_CHANGE): veth%08x: link becomes ready (%d)",
	"pci 0000:00:1f.2: BAR 0 [mem 0x%08x-0x%08x 64bit pref]",
	"[UFW BLOCK] IN=eth0 OUT= MAC= SRC=10.0.3.%d DST=10.0.3.9 LEN=40 TOS=00 PREC=00 TTL=244 ID=%d PROTO=TCP SPT=4711 DPT=22 WINDOW=1024 RES=00 SYN URGP=0",
	"TCP: request_sock_TCP: Possible SYN flooding on port %d. Sending cookies (%d).",
	"pci_bus 0000:00: root bus resource [io  0x%04x-0x%04x window]",
	"systemd[1]: Started Session %d of user shop (%d).",
	"docker0: port %d(veth%08x) entered disabled state",
	"clocksource: tsc: mask: 0xffffffffffffffff max_cycles: 0x%x, max_idle_ns: %d ns",
	"SLUB: HWalign=64, Order=0-3, MinObjects=0, CPUs=%d, Nodes=%d",
	"rcu: Adjusting geometry for rcu_fanout_leaf=%d, nr_cpu_ids=%d",
	"x86/fpu: Supporting XSAVE feature 0x%03x: 'AVX-512 opmask' (%d)",
	"Memory: %dK/%dK available (14336K kernel code, 2332K rwdata)",
	"input: Power Button as /devices/LNXSYSTM:%02d/LNXPWRBN:00/input/input%d",
	"last_pfn = 0x%x max_arch_pfn = 0x%x",
	"nf_conntrack: default automatic helper assignment has been turned off (%d, %d)",
	"Linux agpgart interface v0.103, %d of %d",
}

// kernelLog returns a function that writes about size bytes of Linux's messages at a boot. It
// also writes the log of the row plainText, for comparison.
func kernelLog(size int64) func(b *binaries, path string) error {
	return func(b *binaries, path string) error {
		if _, err := b.logOf(context.Background(), plainText); err != nil {
			return err
		}
		r := rand.New(rand.NewPCG(5, 5))
		return create(path, func(w *logWriter) {
			for i := int64(0); w.size < size; i++ {
				w.printf("[%5d.%06d] ", i/1e3%100_000, r.IntN(1e6))
				w.printf(kernelLines[r.IntN(len(kernelLines))], r.IntN(1<<16), r.IntN(1<<16))
				w.printf("\n")
			}
		})
	}
}
