package llvmfilter

import (
	"debug/elf"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/buildid"
)

// A binary is an ELF file that the process in a generated log may load.
type binary struct {
	id      string
	symbols []elf.Symbol
	end     uint64 // end of its last symbol
}

// readBinary reads the facts about an ELF file that generated logs need.
func readBinary(t testing.TB, path string) binary {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := f.Symbols()
	if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
		t.Fatal(err)
	}
	notes, err := f.Section(".note.gnu.build-id").Data()
	if err != nil || len(notes) < 20 {
		t.Fatalf("%s: no build ID: %v", path, err)
	}
	id, err := buildid.FromBytes(notes[16:])
	if err != nil {
		t.Fatal(err)
	}
	b := binary{id: id.String()}
	for _, s := range all {
		if t := elf.ST_TYPE(s.Info); s.Section != elf.SHN_UNDEF && s.Section < elf.SHN_LORESERVE && t != elf.STT_TLS && s.Name != "" && s.Value != 0 {
			b.symbols = append(b.symbols, s)
			b.end = max(b.end, s.Value+s.Size)
		}
	}
	if len(b.symbols) == 0 { // a stripped file
		b.symbols = append(b.symbols, elf.Symbol{Value: 0x401000, Size: 0x100})
	}
	return b
}

// generator makes logs of a process that loads binaries, and damages some of their elements in
// several ways.
type generator struct {
	*rand.Rand
	binaries []binary
	symbols  []string // mangled names and others
	broken   int      // damaged elements among 100

	loaded []loaded // modules in the current log
}

type loaded struct {
	id   uint64
	base uint64
	size uint64
	rel  uint64
	binary
}

func pick[T any](g *generator, of ...T) T { return of[g.IntN(len(of))] }

// often returns true with a probability of percent percent.
func (g *generator) often(percent int) bool { return g.IntN(100) < percent }

// log returns a log of whole lines.
func (g *generator) log() string {
	g.loaded = nil
	g.broken = pick(g, 0, 0, 5, 30)
	var b strings.Builder
	if g.often(90) {
		for range g.IntN(3) + 1 {
			g.load(&b)
		}
	}
	eol := pick(g, "\n", "\n", "\n", "\r\n")
	for range 1 + g.IntN(8) {
		b.WriteString(g.line())
		if g.often(5) {
			b.WriteString(pick(g, "\r", "\x00", " "))
		}
		b.WriteString(eol)
	}
	return b.String()
}

// load writes the lines of a module and its maps.
func (g *generator) load(b *strings.Builder) {
	l := loaded{id: g.Uint64N(4), base: 0x1000 * (1 + g.Uint64N(64)), binary: g.binaries[g.IntN(len(g.binaries))]}
	id := l.id
	build := l.binary.id
	if g.often(10) {
		build = pick(g, "aabb", "0", "ABCDEF", strings.Repeat("7", 200))
	}
	fmt.Fprintf(b, "%s%s%s\n", g.prefix(), g.damage(fmt.Sprintf("{{{module:%s:%s:elf:%s}}}", g.integer(id), pick(g, "a.out", "", "/lib/x y.so"), build)), g.suffix())
	for range g.IntN(4) {
		l.size = 0x1000 * g.Uint64N(8)
		if g.often(5) {
			l.size = g.Uint64()
		}
		l.rel = l.symbols[g.IntN(len(l.symbols))].Value &^ 0xfff
		if g.often(20) {
			l.rel = 0x1000 * g.Uint64N(5)
		}
		if g.often(3) {
			id = g.Uint64N(6)
		}
		fmt.Fprintf(b, "%s%s%s\n", g.prefix(), g.damage(fmt.Sprintf("{{{mmap:%s:%s:load:%s:%s:%s}}}", g.hex(l.base), g.integer(l.size),
			g.integer(id), pick(g, "r", "rw", "rx", "rwx", "RX", "rW", "x", "w"), g.hex(l.rel))), g.suffix())
		g.loaded = append(g.loaded, l)
		l.base += l.size
		if g.often(20) {
			l.base += 0x1000
		}
		if g.often(5) {
			l.base -= 0x800
		}
		if g.often(5) {
			b.WriteString("between\n")
		}
	}
}

func (g *generator) prefix() string {
	return pick(g, "", "", "", "", "[12] ", "\x1b[31m", " {{{symbol:_Z1fv}}} ", "{{{Bad}}}")
}
func (g *generator) suffix() string {
	return pick(g, "", "", "", "", " tail", "{{{reset}}}", " {{{bt:0:0x1}}}", "\r")
}

func (g *generator) integer(v uint64) string {
	switch g.IntN(12) {
	case 0:
		return fmt.Sprintf("%#x", v)
	case 1:
		return fmt.Sprintf("%#o", v)
	case 2:
		return fmt.Sprintf("0b%b", v)
	case 3:
		return fmt.Sprintf("0o%o", v)
	}
	return fmt.Sprint(v)
}

func (g *generator) hex(v uint64) string {
	switch g.IntN(12) {
	case 0:
		return fmt.Sprintf("0x%020x", v)
	case 1:
		return fmt.Sprintf("0x%X", v)
	}
	if v == 0 {
		return pick(g, "0", "0x0", "0000")
	}
	return fmt.Sprintf("%#x", v)
}

// address returns an address in or near a loaded module, or a random one.
func (g *generator) address() uint64 {
	if len(g.loaded) == 0 || g.often(10) {
		return pick(g, 0, 1, g.Uint64N(1<<20), g.Uint64(), 1<<64-1)
	}
	l := g.loaded[g.IntN(len(g.loaded))]
	if g.often(15) {
		return l.base + pick(g, 0, 1, l.size, l.size+1, l.size-1, g.Uint64N(l.size+1))
	}
	s := l.symbols[g.IntN(len(l.symbols))]
	for range 20 { // an address in the map
		if s.Value-l.rel < l.size {
			break
		}
		s = l.symbols[g.IntN(len(l.symbols))]
	}
	return l.base + s.Value - l.rel + pick(g, 0, 0, 1, s.Size, g.Uint64N(s.Size+2), g.Uint64N(64))
}

func (g *generator) element() string {
	switch g.IntN(10) {
	case 0:
		return "{{{symbol:" + g.symbols[g.IntN(len(g.symbols))] + "}}}"
	case 1, 2:
		return "{{{pc:" + g.hex(g.address()) + pick(g, "", "", ":ra", ":pc") + "}}}"
	case 3, 4:
		return "{{{data:" + g.hex(g.address()) + "}}}"
	case 5:
		return pick(g, "{{{hexdict: a:0x1 b:0}}}", "{{{dumpfile:a:b}}}", "{{{other}}}", "{{{x:}}}", "{{{:y}}}", "{{{}}}", "{{{", "}}}", "{{{{", "{", "}")
	}
	return fmt.Sprintf("{{{bt:%d:%s%s}}}", pick(g, g.Uint64N(12), g.Uint64N(12), g.Uint64N(2000), g.Uint64()), g.hex(g.address()), pick(g, "", "", ":ra", ":pc", ":pc:from CFI", ":sp 0x1"))
}

// damage changes a byte or a field of some elements.
func (g *generator) damage(e string) string {
	if !g.often(g.broken) {
		return e
	}
	b := []byte(e)
	at := g.IntN(len(b))
	if strings.HasPrefix(e, "{{{symbol:_Z") { // demanglers differ for incomplete names
		at = g.IntN(len("{{{symbol:"))
	}
	switch g.IntN(6) {
	case 0:
		b[at] = byte(g.IntN(256))
		if b[at] == '\n' {
			b[at] = '\v'
		}
	case 1:
		b = append(b[:at], b[at+1:]...)
	case 2:
		return string(b[:at]) + pick(g, ":", "}", "{", "0", "x", " ", "{{{", "}}}", "\x1b[1m", "\r", "\x00") + string(b[at:])
	case 3:
		return string(b[:at])
	case 4:
		return strings.TrimSuffix(e, "}}}") + pick(g, ":", ":extra", ":a:b:c") + "}}}"
	case 5:
		if i := strings.LastIndexByte(e, ':'); i > 0 {
			return e[:i] + "}}}"
		}
	}
	return string(b)
}

func (g *generator) text() string {
	return pick(g, "", " ", "text", "a: ", "\x1b[0m", "\x1b[1m", "\x1b[31m", "\x1b[34m", "\x1b[37m", "\x1b[1;31m", "\x1b[38m", "\x1b[m", "\x1b", "\x1b[3", "\x00", "\xff", "é", "\t")
}

func (g *generator) line() string {
	if g.often(6) {
		var b strings.Builder
		g.load(&b)
		return strings.TrimSuffix(b.String(), "\n")
	}
	if g.often(3) {
		return g.text() + g.damage("{{{reset}}}") + g.suffix()
	}
	if g.often(10) {
		return g.text() + g.text()
	}
	if g.often(40) {
		return "    " + g.damage(g.element())
	}
	var b strings.Builder
	for range 1 + g.IntN(5) {
		b.WriteString(g.text())
		b.WriteString(g.damage(g.element()))
	}
	return b.String() + g.text()
}
