package dialect

import (
	"bytes"
	"math/bits"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

// sampleLogs returns the logs of the samples in testdata.
func sampleLogs(t *testing.T) (logs [][]byte) {
	t.Helper()
	archives, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	if err != nil || len(archives) == 0 {
		t.Fatalf("no samples: %v", err)
	}
	for _, path := range archives {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(archive.Files); i += 2 {
			logs = append(logs, archive.Files[i].Data)
		}
	}
	return logs
}

func eachAnchor(line []byte, do func(a anchor, at int)) {
	for last := range line {
		if a, at, ok := anchorTo(line, last); ok && ends[line[last]] {
			do(a, at)
		}
	}
}

// trying returns a copy of t that rejects anchors only by the byte sets direct and back. Grammars
// rely on these two sets.
func (t *tables) trying() *tables {
	slow := *t
	for a := range slow.of {
		f := &slow.of[a]
		for c := range f.next {
			f.beforeBack[c], f.next[c], f.then[c] = ^uint64(0), ^uint64(0), ^uint64(0)
		}
		f.shapes = [shapes]uint64{^uint64(0)}
	}
	return &slow
}

// The tables must reject only anchors at which no grammar matches: if all grammars are tried, the
// frames must be the same. The test tries each line of the samples, each beginning of the line, and
// the line with one byte removed, inserted or changed, up to byte 300 without TEST_LONG=1.
func TestTheTablesRejectWhatNoGrammarMatches(t *testing.T) {
	fuzztest.WithoutRace(t)
	fast, slow := NewReader(nil), NewReader(nil)
	fast.tables, slow.tables = allTables(), allTables().trying()
	lines, found := 0, 0
	framesOf := func(r *Reader, line []byte) []Frame {
		defer func() {
			if fault := recover(); fault != nil {
				t.Errorf("%q: %v", line, fault)
			}
		}()
		r.Reset()
		r.number = 1
		r.open(^window(0), 1)
		r.line.Text, r.line.Frames, r.line.edits = line, r.line.Frames[:0], r.line.edits[:0]
		r.frames(&r.line, -1)
		for i := range r.line.Frames {
			r.line.Frames[i].Key = 0 // the key depends on earlier lines
		}
		return r.line.Frames
	}
	check := func(line []byte) {
		got, want := framesOf(fast, line), framesOf(slow, line)
		if lines++; len(got) == 0 && len(want) == 0 {
			return
		}
		found++
		if !slices.EqualFunc(got, want, func(a, b Frame) bool { return reflect.DeepEqual(a, b) }) {
			t.Errorf("%q: got\n%+v\nwant as if all grammars are tried\n%+v", line, got, want)
		}
	}
	for _, log := range sampleLogs(t) {
		for line := range bytes.Lines(log) {
			line = bytes.TrimRight(line, "\n")
			check(line)
			for i := range line[:min(len(line), fuzztest.LongOr(len(line), 300))] {
				check(line[:i])
				check(slices.Concat(line[:i], line[i+1:]))
				check(slices.Concat(line[:i], []byte(" "), line[i:]))
				other := bytes.Clone(line)
				for _, c := range []byte(fuzztest.LongOr(" \t0ax]()[+:@#,/\r\x80", " 0]")) {
					other[i] = c
					check(other)
				}
			}
		}
	}
	if found < lines/10 {
		t.Errorf("%d of %d lines have frames, want at least a tenth", found, lines)
	}
}

// The tables must reject the same anchors in a block of lines as in each line alone. If the lines
// end with CRLF, the tables must not reject further anchors.
func TestOtherLinesOfABlockChangeNothing(t *testing.T) {
	tables := allTables()
	for _, log := range sampleLogs(t) {
		dos := bytes.ReplaceAll(log, []byte("\n"), []byte("\r\n"))
		from := 0
		fromDOS := 0
		for line := range bytes.Lines(log) {
			text := bytes.TrimRight(line, "\n")
			eachAnchor(text, func(a anchor, at int) {
				want := tables.of[a].at(text, at)
				if got := tables.of[a].at(log, from+at); got != want {
					t.Errorf("%q at %d: got %b in the block, %b alone", text, at, got, want)
				}
				if got := tables.of[a].at(dos, fromDOS+at); got&want != want {
					t.Errorf("%q at %d: got %b with CRLF, want %b", text, at, got, want)
				}
			})
			from += len(line)
			fromDOS += len(line) + 1
		}
	}
}

func TestNoGrammarIsTriedInOrdinaryLines(t *testing.T) {
	const log = `Nov 20 10:02:03 node07 kernel: segment 0x1234abcd: irq 3, status=0x00ff at 0x0123456789abcdef (flags 0x1f)
Nov 20 10:02:03 node07 kernel: token 0x9c84ab0: irq 8, status=0x9810 at 0x7e3a3c7379cf1252 (flags 0x2d)
futex(0x7f31c2a01154, FUTEX_WAIT_BITSET_PRIVATE|FUTEX_CLOCK_REALTIME, 0, NULL, FUTEX_BITSET_MATCH_ANY) = -1 EAGAIN
mmap(NULL, 8192, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0x3000) = 0x7f31c2a01000
brk(0x55d0c0a01000)                     = 0x55d0c0a01000
ioctl(2, TCGETS, 0x7ffd0c1a2b30)        = -1 ENOTTY (Inappropriate ioctl for device)
[    0.123456] BIOS-e820: [mem 0x0000000000100000-0x00000000bffdffff] usable
[    0.123456] pci 0000:00:1f.2: reg 0x10: [mem 0xfebf1000-0xfebf1fff 64bit pref]
[    0.123456] pci_bus 0000:00: resource 4 [io  0x0000-0x0cf7 window]
[    0.123456] ACPI: SSDT 0x00000000BFFE2B40 001F51 (v02 PmRef  Cpu0Ist  00003000 INTL 20160422)
[    0.123456] ata1.00: exception Emask 0x0 SAct 0x7fc00 SErr 0x50000 action 0x6 frozen
0x00007ffd0c1a2b30: 0x48 0x8b 0x05 0x12 0x0f 0x00 0x00 0x48 0x85 0xc0
00000010  48 8b 05 0c 0f 00 00 48  85 c0 74 02 ff d0 48 83  |H......H..t...H.|
static const uint8_t table[] = {0x48, 0x8b, 0x05, 0x12, (0x0f), 0x00};
{"level":"info","msg":"handle 0x1f3a at 0x7f31c2a01154","addr":"0x10","pool":[0x3f]}
[0x7f31c2a01154] INFO request 0x1f3a (0x20) is handled
Nov 20 10:02:03 host-07 dhcpd: lease of ip 10.0.3.17 for pc 12 ends, manipulated by nip: ip=10.0.3.18
the pc of worker 12 has ip 192.168.7.9; meeting @ 09:30, price @ 0.5
`
	tables := allTables()
	for line := range strings.Lines(log) {
		text := []byte(strings.TrimRight(line, "\n"))
		eachAnchor(text, func(a anchor, at int) {
			for set := tables.of[a].at(text, at); set != 0; set &= set - 1 {
				t.Errorf("a grammar of %s is tried in %q at %d", tables.of[a].kinds[bits.TrailingZeros64(set)].first.dialect.Name, text, at)
			}
		})
	}
}
