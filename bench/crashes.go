//go:build linux

package main

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
)

// The rows of logs with raw backtraces of several kinds: tombstones of Android in the form of
// logcat, with build IDs, and backtraces of glibc, whose frames name a file of this machine.
const (
	hotCrashes   = "1 M hot frames of Android and glibc"
	mixedCrashes = "crashes of Android and glibc, 100 MiB"
)

// rawFrame is a place in radosgw, which Android's frames name, or in the library reported, which
// glibc's name.
type rawFrame struct {
	glibc bool
	vaddr uint64 // of Android's, within a call; of glibc's, after it
}

// rawLogs writes frames in a raw form, and the same ones as elements.
type rawLogs struct {
	raw, markup *logWriter
	code        *code  // of radosgw
	library     string // the path that glibc's frames name
	calls       []uint64
	rand        *rand.Rand
}

// libraryTree is the debug tree of the library: the frames of the log with elements have only its
// build ID.
const libraryTree = "dbgl"

// libraryAt is the load address of the library.
const libraryAt = loadedAt + 1<<36

// writeRaw calls write with the logs that it makes: the one at path, and the one beside it.
func writeRaw(b *binaries, path string, write func(l *rawLogs)) error {
	c, err := b.code(radosgw, 0)
	if err != nil {
		return err
	}
	library, calls, err := reportedCalls(2000)
	if err != nil {
		return err
	}
	if calls, err = inFunctions(library, calls); err != nil {
		return err
	}
	id, err := buildID(library)
	if err != nil {
		return err
	}
	if err := link(b.tree(libraryTree), library); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	from, to, bias, err := codeIn(library)
	if err != nil {
		return err
	}
	return create(path, func(raw *logWriter) {
		raw.err = create(path+markupSuffix, func(markup *logWriter) {
			c.context(markup)
			markup.printf("{{{module:1:%s:elf:%s}}}\n{{{mmap:%#x:%#x:load:1:rx:%#x}}}\n", filepath.Base(library), id, libraryAt+from-bias, to-from, from-bias)
			write(&rawLogs{raw: raw, markup: markup, code: c, library: library, calls: calls, rand: c.rand})
		})
	})
}

// inFunctions returns those of the addresses that are in a function with a name: library has dynamic
// symbols only, and frames without an answer are not what the rows are about.
func inFunctions(library string, addrs []uint64) ([]uint64, error) {
	f, err := elf.Open(library)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return nil, err
	}
	var named []uint64
	for _, addr := range addrs {
		if slices.ContainsFunc(symbols, func(s elf.Symbol) bool {
			return elf.ST_TYPE(s.Info) == elf.STT_FUNC && addr-1 >= s.Value && addr-1-s.Value < s.Size
		}) {
			named = append(named, addr)
		}
	}
	if len(named) == 0 {
		return nil, fmt.Errorf("%s: no calls in functions with a name", library)
	}
	return named, nil
}

// stack returns depth random frames of one kind.
func (l *rawLogs) stack(glibc bool) []rawFrame {
	stack := make([]rawFrame, depth)
	for i := range stack {
		stack[i] = l.frame(glibc)
	}
	return stack
}

func (l *rawLogs) frame(glibc bool) rawFrame {
	if glibc {
		return rawFrame{true, l.calls[l.rand.IntN(len(l.calls))]}
	}
	return rawFrame{false, l.code.fresh() - l.code.base - 1}
}

// print writes a backtrace of one kind to both logs.
func (l *rawLogs) print(stack []rawFrame) {
	const logcat = "11-20 10:15:03.412  4711  4711 F DEBUG   : "
	if stack[0].glibc {
		l.line("*** SIGSEGV in shop[4711], backtrace of %d frames:\n", len(stack))
	} else {
		l.line(logcat + "*** *** *** *** *** *** *** *** *** *** *** *** *** *** *** ***\n")
		l.line(logcat + "signal 11 (SIGSEGV), code 1 (SEGV_MAPERR), fault addr 0x0000000000000000\n")
		l.line(logcat + "backtrace:\n")
	}
	for i, f := range stack {
		if f.glibc {
			l.raw.printf("%s(+%#x) [%#x]\n", l.library, f.vaddr, f.vaddr+libraryAt)
			l.markup.printf("{{{bt:%d:%#x:ra}}}\n", i, f.vaddr+libraryAt)
		} else {
			l.raw.printf(logcat+"    #%02d pc %016x  /vendor/bin/%s (BuildId: %s)\n", i, f.vaddr, l.code.module, l.code.id)
			l.markup.printf("{{{bt:%d:%#x:pc}}}\n", i, f.vaddr+l.code.base)
		}
	}
}

// line writes a line without a frame to both logs.
func (l *rawLogs) line(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	l.raw.printf("%s", line)
	l.markup.printf("%s", line)
}

// crashFrames writes n frames in backtraces, drawn from a set of the size distinct.
func crashFrames(n, distinct int) func(b *binaries, path string) error {
	return func(b *binaries, path string) error {
		return writeRaw(b, path, func(l *rawLogs) {
			var chosen [2][]rawFrame
			for i := range distinct {
				chosen[i%2] = append(chosen[i%2], l.frame(i%2 == 1))
			}
			stack := make([]rawFrame, depth)
			for i := range n / depth {
				set := chosen[i%2]
				for j := range stack {
					stack[j] = set[l.rand.IntN(len(set))]
				}
				l.print(stack)
			}
		})
	}
}

// crashLog writes about size bytes: plain lines and, before each 200 of them on average, a backtrace,
// which is one of the number distinct.
func crashLog(size int64, distinct int) func(b *binaries, path string) error {
	return func(b *binaries, path string) error {
		return writeRaw(b, path, func(l *rawLogs) {
			stacks := make([][]rawFrame, distinct)
			for i := range stacks {
				stacks[i] = l.stack(i%2 == 1)
			}
			for l.raw.size < size {
				if l.rand.IntN(200) == 0 {
					l.print(stacks[l.rand.IntN(distinct)])
				}
				l.line("%s", plainLine(l.rand))
			}
		})
	}
}
