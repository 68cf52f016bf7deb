//go:build linux

package integration

import (
	"cmp"
	"debug/elf"
	"encoding/hex"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// debugFile returns the debug file of an ELF file in a tree of build IDs.
func debugFile(t *testing.T, path, tree string) string {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	note, err := f.Section(".note.gnu.build-id").Data()
	if err != nil {
		t.Fatal(err)
	}
	id := hex.EncodeToString(note[len(note)-20:])
	return filepath.Join(tree, ".build-id", id[:2], id[2:]+".debug")
}

// A truthTable has the frames that another program finds for the return addresses of a file,
// innermost first. A frame has the form FUNCTION, a tab, LINE FILE.
type truthTable struct {
	frames  map[uint64][]string
	symbols map[string]uint64 // addresses by name
	partial bool              // inlined calls are missing, except for the innermost line
}

// truthOf returns the frames that addr2line finds for return addresses. addr2line cannot read debug
// information that files share. For such files, truthOf uses eu-addr2line, and takes functions and
// lines, but no inlined calls.
func truthOf(t *testing.T, debug string, addrs []uint64) truthTable {
	t.Helper()
	f, err := elf.Open(debug)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	table := truthTable{frames: make(map[uint64][]string), symbols: make(map[string]uint64), partial: f.Section(".gnu_debugaltlink") != nil}
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		table.symbols[s.Name] = s.Value
	}
	tool := "addr2line"
	if table.partial {
		tool = "eu-addr2line"
	}
	var asked strings.Builder
	for _, addr := range addrs {
		fmt.Fprintf(&asked, "%#x\n", addr-1)
	}
	var addr uint64
	cmd := exec.Command(tool, "-a", "-i", "-f", "-s", "-e", debug)
	cmd.Stdin = strings.NewReader(asked.String())
	out, err := cmd.Output() // eu-addr2line fails if it has no answer for one address
	if _, failed := err.(*exec.ExitError); err != nil && !failed {
		t.Fatal(err)
	}
	lines := strings.Split(string(out), "\n")
	for i := 0; i+1 < len(lines); i += 2 {
		if strings.HasPrefix(lines[i], "0x") {
			if addr, err = strconv.ParseUint(lines[i], 0, 64); err != nil {
				t.Fatal(err)
			}
			addr, i = addr+1, i+1
		}
		name, _, _ := strings.Cut(lines[i], " inlined at ")
		file, line, _ := strings.Cut(lines[i+1], ":")
		line = regexp.MustCompile(`^[0-9]*`).FindString(line)
		table.frames[addr] = append(table.frames[addr], name+"\t"+cmp.Or(line, "0")+" "+file)
	}
	return table
}

// equals reports whether symfilter's frames for the return address have the right files and lines,
// and the outermost one the right function. It ignores the names of inlined calls: for an inlined
// function without a linkage name, addr2line prints the outer function's name.
func (table *truthTable) equals(addr uint64, got twinFrame) (said string, right bool) {
	want := table.frames[addr]
	var names, places, wanted []string
	for _, f := range got.Frames {
		file := "??"
		if f.File != "" {
			file = filepath.Base(f.File)
		}
		names = append(names, cmp.Or(f.Linkage, f.Function))
		places = append(places, fmt.Sprintf("%d %s", f.Line, file))
	}
	outermost := ""
	for _, f := range want {
		var place string
		outermost, place, _ = strings.Cut(f, "\t")
		wanted = append(wanted, place)
	}
	if table.partial && len(want) == 1 && len(places) > 0 {
		places = places[:1]
	}
	last := names[len(names)-1]
	right = slices.Equal(places, wanted) && table.same(last, outermost) ||
		last == "_start" && outermost == last // eu-addr2line prints another function's line
	return fmt.Sprintf("%q %q, want %q", names, places, want), right
}

// structor matches the kind of a constructor or destructor in a linkage name. Debug information has
// the kinds C4 and D4, which symbols never have.
var structor = regexp.MustCompile(`([CD])[0-4]([EI])`)

// same reports whether the linkage names a and b belong to one function: one may name a part of it
// (foo.cold), or both may be symbols at one address, such as constructors and functions merged by
// the linker. b may be a plain name, or "??" if unknown.
func (table *truthTable) same(a, b string) bool {
	whole, _, _ := strings.Cut(structor.ReplaceAllString(a, "${1}4$2"), ".")
	plain, _, _ := strings.Cut(structor.ReplaceAllString(b, "${1}4$2"), ".")
	return plain == "??" || whole == plain || !strings.HasPrefix(plain, "_Z") && strings.Contains(whole, plain) ||
		table.symbols[a] != 0 && table.symbols[a] == table.symbols[b]
}
