package filter

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// A generator makes logs: lines of words, control bytes and colours between elements, whole and
// broken. Every word occurs once, so that a test notices a lost one.
type generator struct {
	*rand.Rand
	words int
}

func newGenerator(seed uint64) *generator {
	return &generator{Rand: rand.New(rand.NewPCG(seed, 1))}
}

// word returns a new word. It has no digits, because lines that differ in digits may merge.
func (g *generator) word() string {
	g.words++
	return "w" + strings.Map(func(r rune) rune { return r - '0' + 'A' }, fmt.Sprint(g.words)) + "w"
}

func pick[T any](g *generator, of ...T) T { return of[g.IntN(len(of))] }

// address returns an address in the fixture's code or data, near it, or anywhere.
func (g *generator) address() uint64 {
	switch g.IntN(8) {
	case 0:
		return g.Uint64()
	case 1:
		return pick[uint64](g, 0, 1, 0x4fffff, 0x500000, 0x501fff, 0x502000, top)
	case 2:
		return 0x5011a0 + g.Uint64N(0x80)
	}
	return 0x500138 + g.Uint64N(0x60)
}

func (g *generator) contextual() string {
	switch g.IntN(5) {
	case 0:
		return "{{{reset}}}"
	case 1, 2:
		return fmt.Sprintf("{{{module:%d:%s:elf:%s}}}", g.IntN(3), pick(g, "a.out", "lib:x.so", ""), pick(g, "a0a1a2a3a4a5a6a7", "b0b1b2b3b4b5b6b7", "cc"))
	}
	return fmt.Sprintf("{{{mmap:%#x:%#x:load:%d:%s:%#x}}}", 0x500000+0x1000*g.Uint64N(4), 0x1000*g.Uint64N(3), g.IntN(4), pick(g, "r", "rx", "rwx"), 0x400000+0x1000*g.Uint64N(2))
}

func (g *generator) presented() string {
	switch g.IntN(4) {
	case 0:
		return fmt.Sprintf("{{{pc:%#x%s}}}", g.address(), pick(g, "", ":ra", ":pc"))
	case 1:
		return fmt.Sprintf("{{{data:%#x}}}", g.address())
	case 2:
		return pick(g, "{{{symbol:_ZN2ns5innerEi}}}", "{{{symbol:main}}}", "{{{symbol:{{{}}}")
	}
	return g.backtrace()
}

func (g *generator) backtrace() string {
	return fmt.Sprintf("{{{bt:%d:%#x%s}}}", g.IntN(200), g.address(), pick(g, "", ":ra", ":pc", ":sp 0x1"))
}

func (g *generator) broken() string {
	return pick(g, "{{{", "}}}", "{{{{", "{", "{{{bt:0:zz}}}", "{{{mmap:}}}", "{{{module:0:x:elf:g}}}", "{{{tAg}}}", "{{{other:1}}}", "{{{hexdict: a:0x1}}}", "{{{hexdict: \x1b[32ma:0x1}}}", "{{{dumpfile:a:b}}}", "{{{pc:0x1")
}

func (g *generator) text() string {
	return pick(g, " ", "\t", "[12.5] ", "", " - ") + g.word() + pick(g, "", " ", ",", ": ", "\x1b[1;31m", "\x1b[0m", "\x00", "\xff\xfe", "é", "\r", "}}}", "{{", "\x1b[", "\x1b]0;t\a")
}

// line returns a line without its end.
func (g *generator) line() string {
	switch g.IntN(8) {
	case 0:
		return ""
	case 1, 2:
		return "[" + fmt.Sprint(g.IntN(1000)) + "] " + g.contextual()
	case 3:
		return pick(g, "", "    ", "[7.125] ") + g.backtrace() + pick(g, "", "", " "+g.word())
	case 4:
		return g.text() + g.text()
	}
	var b strings.Builder
	for range g.IntN(6) {
		b.WriteString(pick(g, g.text, g.text, g.presented, g.broken, g.contextual)())
	}
	return b.String()
}

// log returns n lines; the last one may lack its end.
func (g *generator) log(n int) string {
	var b strings.Builder
	b.WriteString("{{{reset}}}\n{{{module:0:a.out:elf:a0a1a2a3a4a5a6a7}}}\n{{{mmap:0x500000:0x1000:load:0:rx:0x400000}}}\n{{{mmap:0x501000:0x1000:load:0:rw:0x401000}}}\n")
	for i := range n {
		b.WriteString(g.line())
		if i < n-1 || g.IntN(2) == 0 {
			b.WriteString(pick(g, "\n", "\n", "\n", "\r\n"))
		}
	}
	return b.String()
}
