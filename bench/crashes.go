//go:build linux

package main

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
)

// Names of the rows with raw backtraces of Android and glibc. Frames of Android have build IDs, as
// in logcat. Frames of glibc name a library on this machine.
const (
	hotCrashes   = "1 M hot frames of Android and glibc"
	mixedCrashes = "crashes of Android and glibc, 100 MiB"
)

// rawFrame is a frame of a backtrace. Its address is in radosgw for Android, and in libLLVM for
// glibc.
type rawFrame struct {
	glibc bool
	vaddr uint64 // within a call for Android, after the call for glibc
}

// rawLogs writes the same frames to two logs: in a raw form, and as markup elements.
type rawLogs struct {
	raw, markup *logWriter
	code        *code       // code of radosgw
	library     string      // path of the library in glibc's frames
	functions   []*function // functions of the library
	rand        *rand.Rand
}

// libraryTree is the debug tree with the library that the frames of glibc name. The log with
// elements has only its build ID, not its path.
const libraryTree = "dbgl"

const libraryAt = loadedAt + 1<<36

// writeRaw creates two logs with the same frames: a raw log at path, and a log of elements at path
// plus markupSuffix. It calls write once, which fills both logs.
func writeRaw(b *binaries, path string, write func(l *rawLogs)) error {
	c, err := b.code(radosgw, 0)
	if err != nil {
		return err
	}
	library, err := reportedLibrary()
	if err != nil {
		return err
	}
	functions, err := calledFunctions(library)
	if err != nil {
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
			write(&rawLogs{raw: raw, markup: markup, code: c, library: library, functions: functions, rand: c.rand})
		})
	})
}

// A function describes a function of the library that has a dynamic symbol, with the direct calls
// to it.
type function struct {
	start, end uint64
	callers    []caller
}

// A caller describes a direct call in the library: the address after the call, and the function
// that contains the call.
type caller struct {
	end uint64
	in  *function
}

// calledFunctions finds chains of depth direct calls in a library, and returns the functions at
// their ends. All functions of a chain have dynamic symbols, since each frame needs a name.
func calledFunctions(library string) ([]*function, error) {
	f, err := elf.Open(library)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return nil, err
	}
	calls, err := directCalls(library)
	if err != nil {
		return nil, err
	}
	at := make(map[uint64]*function)
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Size > 0 && at[s.Value] == nil {
			at[s.Value] = &function{start: s.Value, end: s.Value + s.Size}
		}
	}
	named := slices.SortedFunc(maps.Values(at), func(a, b *function) int { return cmp.Compare(a.start, b.start) })
	for _, c := range calls {
		i, _ := slices.BinarySearchFunc(named, c.end, func(f *function, end uint64) int { return cmp.Compare(f.start, end) })
		if called := at[c.target]; called != nil && i > 0 && c.end < named[i-1].end {
			called.callers = append(called.callers, caller{c.end, named[i-1]})
		}
	}
	for range depth { // each round keeps the functions of chains with one more caller
		kept := make(map[*function]bool)
		for _, f := range named {
			kept[f] = true
		}
		for _, f := range named {
			f.callers = slices.DeleteFunc(f.callers, func(c caller) bool { return !kept[c.in] })
		}
		named = slices.DeleteFunc(named, func(f *function) bool { return len(f.callers) == 0 })
	}
	if len(named) == 0 {
		return nil, fmt.Errorf("%s: no chain of %d calls of functions with a name", library, depth)
	}
	return named, nil
}

// glibcStack returns depth frames. Each function calls the previous one, as in a real backtrace: by
// these calls, symfilter proves that the library is the file that ran.
func (l *rawLogs) glibcStack() []rawFrame {
	stack, at := make([]rawFrame, depth), l.functions[l.rand.IntN(len(l.functions))]
	for i := range stack {
		c := at.callers[l.rand.IntN(len(at.callers))]
		stack[i], at = rawFrame{true, c.end}, c.in
	}
	return stack
}

// stack returns depth random frames, of glibc or of Android.
func (l *rawLogs) stack(glibc bool) []rawFrame {
	if glibc {
		return l.glibcStack()
	}
	stack := make([]rawFrame, depth)
	for i := range stack {
		stack[i] = rawFrame{false, l.code.fresh() - l.code.base - 1}
	}
	return stack
}

// stacks returns n stacks, alternately of Android and of glibc.
func (l *rawLogs) stacks(n int) [][]rawFrame {
	stacks := make([][]rawFrame, n)
	for i := range stacks {
		stacks[i] = l.stack(i%2 == 1)
	}
	return stacks
}

// print writes a backtrace to both logs.
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

// crashFrames returns a function that writes n frames in backtraces. distinct is the number of
// different backtraces.
func crashFrames(n, distinct int) func(b *binaries, path string) error {
	return func(b *binaries, path string) error {
		return writeRaw(b, path, func(l *rawLogs) {
			stacks := l.stacks(distinct)
			for range n / depth {
				l.print(stacks[l.rand.IntN(distinct)])
			}
		})
	}
}

// crashLog returns a function that writes about size bytes: plain lines, and a backtrace before one
// line in 200. distinct is the number of different backtraces.
func crashLog(size int64, distinct int) func(b *binaries, path string) error {
	return func(b *binaries, path string) error {
		return writeRaw(b, path, func(l *rawLogs) {
			stacks := l.stacks(distinct)
			for l.raw.size < size {
				if l.rand.IntN(200) == 0 {
					l.print(stacks[l.rand.IntN(distinct)])
				}
				l.line("%s", plainLine(l.rand))
			}
		})
	}
}
