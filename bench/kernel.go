//go:build linux

package main

import (
	"debug/elf"
	"slices"
)

// The rows of messages of Linux.
const (
	hotOopses = "100 k hot frames of oopses, --image vmlinux"
	oneOops   = "first frame of an oops, --image vmlinux"
)

// oopses returns a function that writes n frames as an oops does, in functions drawn from a set of the
// size distinct, and beside the log another one with the same addresses as elements.
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
				continue // its size in the log would not be known, or its name is not alone
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

// oopsAgainstMarkup compares with the same command on the log with elements.
func oopsAgainstMarkup(name string) func(b *binaries, command, out string) (other, mine []string) {
	return func(b *binaries, command, _ string) (other, mine []string) {
		mine = []string{command, "--debug-file-directory=" + b.tree(plainTree), alone, "--image=" + b.bin(vmlinux)}
		log := b.logPath(workload{name: name}) + markupSuffix
		return append([]string{"sh", "-c", `exec "$@" <"$0"`, log}, mine...), mine
	}
}
