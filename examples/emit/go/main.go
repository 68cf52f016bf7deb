//go:build linux

// Go prints the modules, maps and a backtrace of its own process as symbolizer markup.
package main

import (
	"debug/elf"
	"fmt"
	"os"
	"runtime"
	"strings"
)

// printModules prints each mapped ELF file, with its mapped segments.
func printModules() {
	maps, _ := os.ReadFile("/proc/self/maps")
	last, id, file := "", -1, (*elf.File)(nil)
	for line := range strings.Lines(string(maps)) {
		var mode string
		var start, end, offset uint64
		fmt.Sscanf(line, "%x-%x %s %x", &start, &end, &mode, &offset)
		_, path, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "/")
		if path != last {
			last = path
			if file, _ = elf.Open("/" + path); file != nil {
				id++
				fmt.Printf("{{{module:%d:/%s:elf:%x}}}\n", id, path, buildID(file))
			}
		}
		mode = strings.NewReplacer("-", "", "p", "", "s", "").Replace(mode)
		if file == nil || mode == "" { // memory without a file, or a gap
			continue
		}
		var segment *elf.Prog // the last segment with the map's first page: two may share a page
		for _, p := range file.Progs {
			if p.Type == elf.PT_LOAD && p.Off&^0xfff <= offset && offset < p.Off+p.Filesz {
				segment = p
			}
		}
		if segment != nil {
			fmt.Printf("{{{mmap:0x%016x:%#x:load:%d:%s:0x%016x}}}\n", start, end-start, id, mode, segment.Vaddr-segment.Off+offset)
		}
	}
}

func buildID(file *elf.File) []byte {
	if s := file.Section(".note.gnu.build-id"); s != nil {
		if note, err := s.Data(); err == nil && len(note) > 16 {
			return note[16:] // after the header and the name GNU
		}
	}
	return nil
}

// printBacktrace prints the backtrace of its caller. runtime.Callers also returns inlined
// calls, which symbolizers find themselves. So only the first address of each physical frame is
// printed.
func printBacktrace() {
	fmt.Println("{{{reset}}}")
	printModules()
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	inlined := false
	for n, more := 0, true; more; {
		var f runtime.Frame
		if f, more = frames.Next(); f.PC != 0 && !inlined {
			fmt.Printf("{{{bt:%d:0x%016x:ra}}}\n", n, f.PC+1) // Next has subtracted one from the return address
			n++
		}
		inlined = f.Func == nil
	}
}

func inlined() { printBacktrace() }

//go:noinline
func work() { inlined() }

func main() { work() }
