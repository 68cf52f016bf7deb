//go:build linux

package main

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
)

// elementTree is a command that reads a report of Valgrind as scripts usually do.
var elementTree = []string{"python3", "-c", "import sys, xml.etree.ElementTree as E; E.parse(sys.stdin.buffer)"}

// reported is the pattern for the path of libLLVM, a large library with only dynamic symbols. The
// frames of the reports are in this library.
const reported = "/usr/lib/*/libLLVM.so.19.1"

// valgrindReport returns a function that writes a Valgrind report of about size bytes: leaks with
// callers in a library. distinct is the number of different callers. Stacks repeat after at most
// distinct leaks.
func valgrindReport(size int64, distinct int) func(b *binaries, path string) error {
	return leaks(size, distinct, depth, func(i, j int) int { return i*7 + j })
}

// differentLeaks is like valgrindReport, but the stacks are longer and all differ.
func differentLeaks(size int64, distinct int) func(b *binaries, path string) error {
	r := rand.New(rand.NewPCG(7, 7))
	return leaks(size, distinct, 28, func(int, int) int { return r.IntN(distinct) })
}

// leaks returns a function that writes a report of leaks, each with depth callers. place returns
// the number of the return address that caller j of leak i has.
func leaks(size int64, distinct, depth int, place func(i, j int) int) func(b *binaries, path string) error {
	return func(_ *binaries, path string) error {
		name, calls, err := reportedCalls(distinct)
		if err != nil {
			return err
		}
		const bias = 0x4852000
		return create(path, func(w *logWriter) {
			w.printf("<?xml version=\"1.0\"?>\n\n<valgrindoutput>\n\n<protocolversion>4</protocolversion>\n<protocoltool>memcheck</protocoltool>\n\n" +
				"<pid>7</pid>\n<ppid>1</ppid>\n<tool>memcheck</tool>\n\n<args>\n  <argv>\n    <exe>/bin/prog</exe>\n  </argv>\n</args>\n\n")
			for i := 0; w.size < size; i++ {
				w.printf("<error>\n  <unique>%#x</unique>\n  <tid>1</tid>\n  <kind>Leak_DefinitelyLost</kind>\n  <xwhat>\n    <text>%d bytes in 1 blocks are definitely lost in loss record 1 of 2</text>\n"+
					"    <leakedbytes>%[2]d</leakedbytes>\n    <leakedblocks>1</leakedblocks>\n  </xwhat>\n  <stack>\n    <frame>\n      <ip>0x48417B4</ip>\n      <obj>/usr/libexec/valgrind/vgpreload_memcheck-amd64-linux.so</obj>\n      <fn>malloc</fn>\n    </frame>\n", i, i+1)
				for j := range depth {
					w.printf("    <frame>\n      <ip>%#X</ip>\n      <obj>%s</obj>\n    </frame>\n", calls[place(i, j)%len(calls)]+bias-1, name)
				}
				w.printf("  </stack>\n</error>\n\n")
			}
			w.printf("</valgrindoutput>\n")
		})
	}
}

// reportedCalls returns the path of libLLVM, and the return addresses of n direct calls spread over
// its code.
func reportedCalls(n int) (path string, calls []uint64, err error) {
	if path, err = reportedLibrary(); err != nil {
		return "", nil, err
	}
	calls, err = callsIn(path, n)
	return path, calls, err
}

// reportedLibrary returns the path of libLLVM, which matches reported.
func reportedLibrary() (string, error) {
	paths, err := filepath.Glob(reported)
	if err != nil || len(paths) == 0 {
		return "", fmt.Errorf("no %s, %v", reported, err)
	}
	return paths[0], nil
}

// callsIn returns the addresses after n direct calls in an x86-64 file, spread over its code.
func callsIn(path string, n int) ([]uint64, error) {
	all, err := directCalls(path)
	if err != nil {
		return nil, err
	}
	// use only the 20th call to each target: 20 calls to one target are real calls, not other bytes
	called := make(map[uint64]int)
	var ends []uint64
	for _, c := range all {
		if called[c.target]++; called[c.target] == 20 {
			ends = append(ends, c.end)
		}
	}
	if len(ends) < n {
		return nil, fmt.Errorf("%s: only %d calls", path, len(ends))
	}
	spread := make([]uint64, n)
	for i := range spread {
		spread[i] = ends[i*len(ends)/n]
	}
	return spread, nil
}

// A call is a direct call: the address after it, and the address of the called function.
type call struct{ end, target uint64 }

// directCalls returns the probable direct calls in an x86-64 file, in the order of their addresses.
func directCalls(path string) (all []call, err error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text := f.Section(".text")
	if text == nil {
		return nil, errors.New(path + ": no .text")
	}
	code, err := text.Data()
	if err != nil {
		return nil, err
	}
	for i := 0; i+5 <= len(code); i++ {
		if code[i] != 0xe8 {
			continue
		}
		end := text.Addr + uint64(i) + 5
		target := end + uint64(int64(int32(binary.LittleEndian.Uint32(code[i+1:]))))
		if target >= text.Addr && target < text.Addr+text.Size && target%16 == 0 {
			all = append(all, call{end, target})
		}
	}
	return all, nil
}
