//go:build linux

package main

import (
	"debug/elf"
	"errors"
)

// countAddresses counts the addresses in an sp-rtrace report line by line, as sp-rtrace's
// scripts do.
var countAddresses = []string{"awk", `/^\t0x/ { n[$1]++ } END { for (a in n) print a, n[a] }`}

// trace returns a function that writes an sp-rtrace report of about size bytes, with blocks
// allocated and freed. distinct is the number of different callers, all in one library.
func trace(size int64, distinct int) func(b *binaries, path string) error {
	return func(_ *binaries, path string) error {
		name, calls, err := reportedCalls(distinct)
		if err != nil {
			return err
		}
		from, to, bias, err := codeIn(name)
		if err != nil {
			return err
		}
		return create(path, func(w *logWriter) {
			w.printf("version=2.0, arch=x86_64, timestamp=2011.6.16 15:49:48, process=/bin/prog, pid=312, backtrace depth=%d, origin=sp-rtrace 1.6, \n"+
				"<1> : memory (memory allocation in heap)\n: %s => %#x-%#x\n", depth, name, from, to)
			for i := 0; w.size < size; i++ {
				block := 0x55d0_0000_0000 + uint64(i/2%4096)*64
				if i%2 == 0 {
					w.printf("%d. [14:54:%02d.%03d] malloc(%d) = %#x\n", i+1, i/1000%60, i%1000, i%100+1, block)
				} else {
					w.printf("%d. [14:54:%02d.%03d] free(%#x)\n", i+1, i/1000%60, i%1000, block)
				}
				for j := range depth {
					w.printf("\t%#x\n", calls[(i*7+j)%len(calls)]+bias)
				}
				w.printf("\n")
			}
		})
	}
}

// codeIn returns a load bias for a library, and the address range of its first executable segment
// with this bias.
func codeIn(path string) (from, to, bias uint64, err error) {
	f, err := elf.Open(path)
	if err != nil {
		return 0, 0, 0, err
	}
	defer f.Close()
	const page = 4096
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 {
			bias = 0x7f00_0000_0000
			return bias + p.Vaddr&^(page-1), bias + (p.Vaddr+p.Filesz+page-1)&^(page-1), bias, nil
		}
	}
	return 0, 0, 0, errors.New(path + ": no code")
}
