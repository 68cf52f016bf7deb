package logtest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
)

// A Generator makes logs: lines of words, control bytes and colours between elements, whole and
// broken. Every word occurs once, so a test notices its loss.
type Generator struct {
	*rand.Rand
	words int
}

// NewGenerator returns a Generator whose logs depend on seed alone.
func NewGenerator(seed uint64) *Generator {
	return &Generator{Rand: rand.New(rand.NewPCG(seed, 1))}
}

// Word returns a new word. It has no digits, because lines that differ in digits may merge.
func (g *Generator) Word() string {
	g.words++
	return "w" + strings.Map(func(r rune) rune { return r - '0' + 'A' }, fmt.Sprint(g.words)) + "w"
}

// Pick returns one of the values.
func Pick[T any](g *Generator, of ...T) T { return of[g.IntN(len(of))] }

// Address returns an address in the code or data of the module in a Log, near it, or anywhere.
func (g *Generator) Address() uint64 {
	switch g.IntN(8) {
	case 0:
		return g.Uint64()
	case 1:
		return Pick[uint64](g, 0, 1, 0x4fffff, 0x500000, 0x501fff, 0x502000, math.MaxUint64)
	case 2:
		return 0x5011a0 + g.Uint64N(0x80)
	}
	return 0x500138 + g.Uint64N(0x60)
}

// Contextual returns an element that changes the context, or that has an invalid field.
func (g *Generator) Contextual() string {
	switch g.IntN(5) {
	case 0:
		return "{{{reset}}}"
	case 1, 2:
		return fmt.Sprintf("{{{module:%d:%s:elf:%s}}}", g.IntN(3), Pick(g, "a.out", "lib:x.so", ""), Pick(g, "a0a1a2a3a4a5a6a7", "b0b1b2b3b4b5b6b7", "cc"))
	}
	return fmt.Sprintf("{{{mmap:%#x:%#x:load:%d:%s:%#x}}}", 0x500000+0x1000*g.Uint64N(4), 0x1000*g.Uint64N(3), g.IntN(4), Pick(g, "r", "rx", "rwx"), 0x400000+0x1000*g.Uint64N(2))
}

// Presented returns an element that is printed with a symbol, file or line.
func (g *Generator) Presented() string {
	switch g.IntN(4) {
	case 0:
		return fmt.Sprintf("{{{pc:%#x%s}}}", g.Address(), Pick(g, "", ":ra", ":pc"))
	case 1:
		return fmt.Sprintf("{{{data:%#x}}}", g.Address())
	case 2:
		return Pick(g, "{{{symbol:_ZN2ns5innerEi}}}", "{{{symbol:main}}}", "{{{symbol:{{{}}}")
	}
	return g.Backtrace()
}

// Backtrace returns an element of a backtrace.
func (g *Generator) Backtrace() string {
	return fmt.Sprintf("{{{bt:%d:%#x%s}}}", g.IntN(200), g.Address(), Pick(g, "", ":ra", ":pc", ":sp 0x1"))
}

// Broken returns braces without an element, an invalid or unknown element, or an element that is
// usually alone on its line.
func (g *Generator) Broken() string {
	return Pick(g, "{{{", "}}}", "{{{{", "{", "{{{bt:0:zz}}}", "{{{mmap:}}}", "{{{module:0:x:elf:g}}}", "{{{tAg}}}", "{{{other:1}}}", "{{{hexdict: a:0x1}}}", "{{{hexdict: \x1b[32ma:0x1}}}", "{{{dumpfile:a:b}}}", "{{{pc:0x1")
}

// Text returns text with a new word.
func (g *Generator) Text() string {
	return Pick(g, " ", "\t", "[12.5] ", "", " - ") + g.Word() + Pick(g, "", " ", ",", ": ", "\x1b[1;31m", "\x1b[0m", "\x00", "\xff\xfe", "é", "\r", "}}}", "{{", "\x1b[", "\x1b]0;t\a")
}

// Line returns a line without its end.
func (g *Generator) Line() string {
	switch g.IntN(8) {
	case 0:
		return ""
	case 1, 2:
		return "[" + fmt.Sprint(g.IntN(1000)) + "] " + g.Contextual()
	case 3:
		return Pick(g, "", "    ", "[7.125] ") + g.Backtrace() + Pick(g, "", "", " "+g.Word())
	case 4:
		return g.Text() + g.Text()
	}
	var b strings.Builder
	for range g.IntN(6) {
		b.WriteString(Pick(g, g.Text, g.Text, g.Presented, g.Broken, g.Contextual)())
	}
	return b.String()
}

// Log returns n lines; the last one may lack its end.
func (g *Generator) Log(n int) string {
	var b strings.Builder
	b.WriteString("{{{reset}}}\n{{{module:0:a.out:elf:a0a1a2a3a4a5a6a7}}}\n{{{mmap:0x500000:0x1000:load:0:rx:0x400000}}}\n{{{mmap:0x501000:0x1000:load:0:rw:0x401000}}}\n")
	for i := range n {
		b.WriteString(g.Line())
		if i < n-1 || g.IntN(2) == 0 {
			b.WriteString(Pick(g, "\n", "\n", "\n", "\r\n"))
		}
	}
	return b.String()
}
