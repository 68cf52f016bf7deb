//go:build linux

package integration

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/testenv"
)

// A placed is a function in a log, with the files and lines that a tool prints for it.
type placed struct {
	exact bool   // the line belongs to the instruction itself, not to the call before it
	name  string // without offset and size
	chain string // "file:line file:line", innermost first; empty if the tool prints none
}

// Results of comparing symfilter with the kernel's script decode_stacktrace.sh. The script agrees,
// or prints another place or none for one of these reasons.
const (
	agrees        = "agrees"
	notBefore     = "it looks up the return address, not the call before it"
	firstOfName   = "it takes the first function of the name, whatever its size"
	onlyText      = "it knows global and local functions, not weak ones"
	compressed    = "it does not read compressed modules"
	otherSections = "it takes addresses of all sections of a module for those of the first"
)

const maxDecoded = 40 // functions of the kernel itself: the script takes seconds for each

// Lines must equal those that Linux's decode_stacktrace.sh prints, except where the script has a
// known fault.
func TestLinesAgreeWithDecodeStacktrace(t *testing.T) {
	testenv.OnlyLong(t)
	vmlinux, _, _ := kernelFiles(t)
	script := testenv.Find(t, filepath.Join(filepath.Dir(vmlinux), "decode_stacktrace.sh"))
	need(t, "bash", "nm", "xz", "llvm-addr2line-19", "llvm-readelf-19", "llvm-symbolizer-19")
	symbols := kernelSymbols(t, vmlinux)
	first := firstOfNames(t, vmlinux)
	recorded := kernelLogOf(t, readText(t, filepath.Join("testdata", "kernel", "console.log")))
	module := filepath.Join(recorded.tree(t, false), "usr/lib/debug/lib/modules/6.1.0-56-amd64/kernel/drivers/ledger.ko")

	// the functions of a recorded log, and some that share their name with another function
	frames := []string{"CPU: 0 PID: 71 Comm: insmod Not tainted 6.1.0-56-amd64 #1", "Call Trace:"}
	var inModule []string
	seen := make(map[string]bool)
	for line := range strings.Lines(recorded.text) {
		m := kernelFunction.FindString(line)
		if m == "" || seen[m] {
			continue
		}
		if seen[m] = true; strings.Contains(line, "RIP: 0010:") {
			m = "RIP: 0010:" + m
		}
		if strings.HasSuffix(m, "]") {
			inModule = append(inModule, " "+m)
		} else if len(frames) < maxDecoded {
			frames = append(frames, " "+m)
		}
	}
	frames = append(frames, inModule...)
	shared := 0
	for _, name := range slices.Sorted(maps.Keys(symbols)) {
		of := symbols[name]
		if len(of) < 2 || shared == 8 {
			continue
		}
		slices.SortFunc(of, func(a, b kernelSymbol) int { return cmp.Compare(a.addr, b.addr) })
		if s := of[len(of)-1]; s.size > 16 && s.next >= s.size && s.next != of[0].next {
			frames = append(frames, fmt.Sprintf(" %s+%#x/%#x", name, s.size/2, s.next))
			shared++
		}
	}
	log := strings.Join(frames, "\n") + "\n"
	ours := placesOf(run(t, []byte(log), command, "-q", "--image", vmlinux, "--image", module))
	decode := func(log string) []placed {
		// the script removes its second argument from the beginning of paths
		return decodedPlaces(run(t, []byte(log), "env", "LLVM=-19", "bash", script, vmlinux, "none", filepath.Dir(module)))
	}
	theirs := decode(log)
	run(t, nil, "xz", module)
	zipped := decode(strings.Join(inModule, "\n") + "\n")
	l := kernelLogOf(t, log)
	if len(ours) != len(l.places) || len(theirs) != len(ours) || len(zipped) != len(inModule) {
		t.Fatalf("%d places, ours %d, theirs %d and %d", len(l.places), len(ours), len(theirs), len(zipped))
	}
	for _, p := range zipped {
		if p.chain != "" {
			t.Errorf("%s is decoded from a compressed module: %s", p.name, p.chain)
		}
	}
	causes := map[string]int{compressed: len(zipped)}
	for i, p := range l.places {
		of := first[p.name]
		if ours[i].chain == "" { // no function or two functions have that size
			continue
		}
		offset := p.offset
		if !ours[i].exact {
			offset++ // as the log has it
		}
		cause := ""
		switch {
		case theirs[i].chain == ours[i].chain:
			cause = agrees
		case p.module != "" && p.section() != ".text":
			cause = otherSections
		case p.module != "":
			cause = notBefore
		case theirs[i].chain == "" && of == 0:
			cause = onlyText
		case theirs[i].chain != chainAt(t, vmlinux, of+offset):
		case !slices.ContainsFunc(symbols[p.name], func(s kernelSymbol) bool { return s.addr == of && p.size == s.next }):
			cause = firstOfName
		case !ours[i].exact:
			cause = notBefore
		}
		if cause == "" {
			t.Errorf("%s+%#x/%#x: %q, want %q", p.name, offset, p.size, ours[i].chain, theirs[i].chain)
		}
		causes[cause]++
	}
	t.Log(causes)
	if causes[agrees] < 10 || causes[notBefore] < 10 || causes[firstOfName] < 3 || causes[compressed] < 5 {
		t.Errorf("%v", causes)
	}
}

// placesOf returns the functions in a filtered kernel log with their files and lines.
func placesOf(log string) (all []placed) {
	var inlined []string
	for line := range strings.Lines(log) {
		line = strings.TrimSpace(line)
		if text, ok := strings.CutSuffix(line, " [inline]"); ok {
			inlined = append(inlined, text[strings.LastIndexByte(text, ' ')+1:])
			continue
		}
		m := kernelFunction.FindStringSubmatchIndex(line)
		if m == nil {
			continue
		}
		p := placed{exact: strings.Contains(line, "RIP: "), name: line[m[2]:m[3]]}
		if at := strings.TrimSpace(line[m[1]:]); at != "" {
			p.chain = strings.Join(append(inlined, at), " ")
		}
		all, inlined = append(all, p), nil
	}
	return all
}

var (
	decodedFrame  = regexp.MustCompile(`([\w.]+) \((.*)\) ?(?:\w*)$`)
	discriminator = regexp.MustCompile(` \(discriminator \d+\)`)
)

func decodedPlaces(out string) (all []placed) {
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(discriminator.ReplaceAllString(line, ""))
		if m := decodedFrame.FindStringSubmatch(line); m != nil {
			all = append(all, placed{name: m[1], chain: m[2]})
		} else if m := kernelFunction.FindStringSubmatch(line); m != nil {
			all = append(all, placed{name: m[1]})
		}
	}
	return all
}

// firstOfNames returns, for each name, the address that decode_stacktrace.sh uses: the first in
// nm's output.
func firstOfNames(t *testing.T, file string) map[string]uint64 {
	t.Helper()
	first := make(map[string]uint64)
	for line := range strings.Lines(run(t, nil, "nm", file)) {
		words := strings.Fields(line)
		if len(words) == 3 && strings.EqualFold(words[1], "t") && first[words[2]] == 0 {
			first[words[2]] = number(t, words[0])
		}
	}
	return first
}

func chainAt(t *testing.T, file string, addr uint64) string {
	t.Helper()
	var chain []string
	out := run(t, []byte(fmt.Sprintf("%s %#x\n", file, addr)), "llvm-symbolizer-19", "--output-style=GNU", "--no-demangle", "-f=none")
	for line := range strings.Lines(out) {
		if line = strings.TrimSpace(discriminator.ReplaceAllString(line, "")); line != "" {
			chain = append(chain, line)
		}
	}
	return strings.Join(chain, " ")
}
