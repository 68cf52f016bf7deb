package filter

import (
	"strconv"

	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/internal/layout"
	"github.com/symfilter/symfilter/markup"
)

// frameIndent is the column of a frame's address. A frame that does not fit on its line continues
// in that column.
const frameIndent = len("    #0.1 ")

// frame lays out the i-th frame of the answer for e as in a backtrace line:
//
//	#0.1  0x… ns::inner(int) /src/a.cpp:7:65 (a.out+0x1196)
//	#0    0x… int ns::Foo::run<int>(int) /src/a.cpp:9:73 (a.out+0x1196)
func (f *lineFilter) frame(e *frameFields, a *answer, i int) {
	number, addr := e.number, e.shownAddr(a)
	inlined := a.hasText && i < len(a.text.cuts)-1
	if f.quick && a.hasText && number <= 9999 {
		depth := 0
		if inlined {
			depth = i + 1
		}
		f.layout.Buf = layout.AppendHead(f.layout.Buf, number, depth, addr)
		f.layout.Buf = append(f.layout.Buf, a.text.tail(i)...)
		return
	}
	var n [20]byte
	digits := strconv.AppendUint(n[:0], number, 10)
	f.layout.Mark("    #"[min(len(digits), 5)-1:])
	f.layout.Mark(string(digits))
	if inlined {
		f.layout.Mark(".")
		depth := strconv.AppendUint(n[:0], uint64(i+1), 10)
		if len(depth) < 2 {
			depth = append(depth, ' ')
		}
		f.layout.Mark(string(depth))
	} else {
		f.layout.Mark("   ")
	}
	if e.empty(a) {
		f.layout.Mark(" " + noAddress)
		return
	}
	f.layout.Address(addr)
	switch {
	case a.mod == nil:
		f.layout.Unresolved("(no module)")
	case !a.hasText:
		f.unknown("(", a, ")")
	default:
		f.layout.FunctionAndLine(a.text.frame(i))
		f.place(a)
	}
}

// place lays out the module and the module-relative address of an answer, as (module+0x1196).
func (f *lineFilter) place(a *answer) {
	f.layout.Display.Breakable(len(f.layout.Buf))
	f.layout.Dim(" (")
	f.layout.Buf = append(appendPlace(f.layout.Buf, a.mod, a.rel), ')')
}

// unknown lays out an answer without a name. It lays out the module and the address between the two
// given texts, then the build ID. With the build ID, another tool can find the debug file.
func (f *lineFilter) unknown(before string, a *answer, after string) {
	f.layout.Display.Breakable(len(f.layout.Buf))
	f.layout.Unresolved(before)
	f.layout.Buf = append(appendPlace(f.layout.Buf, a.mod, a.rel), after...)
	f.layout.Display.Breakable(len(f.layout.Buf))
	f.layout.Unresolved(" (BuildId: ")
	f.layout.Buf = append(a.mod.buildID().AppendHex(f.layout.Buf), ')')
}

// frameInSentence lays out the answer for a frame within a sentence:
//
//	#0 ns::inner(int) /src/a.cpp:7:65 (a.out+0x1196) inlined into …
func (f *lineFilter) frameInSentence(e *frameFields, a *answer) {
	if e.empty(a) {
		f.layout.Mark(noAddress)
		return
	}
	f.layout.Mark("#")
	f.layout.Mark(strconv.FormatUint(e.number, 10))
	f.layout.Mark(" ")
	if !a.hasText {
		f.layout.Dim("0x" + strconv.FormatUint(e.shownAddr(a), 16))
		if a.mod == nil {
			f.layout.Unresolved(" (no module)")
			return
		}
		f.unknown(" (", a, ")")
		return
	}
	for i := range a.text.cuts {
		if i > 0 {
			f.layout.Display.Breakable(len(f.layout.Buf))
			f.layout.Dim(" inlined into ")
		}
		f.layout.FunctionAndLine(a.text.frame(i))
		if i == 0 {
			f.place(a)
		}
	}
}

const noAddress = "(no address)"

func (f *lineFilter) message(message []byte) {
	// checked here, where the compiler inlines the check, since few frames have a message
	if len(message) > 0 {
		f.someMessage(message)
	}
}

func (f *lineFilter) someMessage(message []byte) {
	f.layout.Mark(" ")
	f.layout.Value(escape.Clean(string(message)))
}

// codeLocation lays out the answer for a pc element:
//
//	ns::inner(int)[/src/a.cpp:7] inlined into int ns::Foo::run<int>(int)[/src/a.cpp:9]
func (f *lineFilter) codeLocation(a *answer) {
	if !a.hasText {
		f.unknown("", a, "")
		return
	}
	f.functionsAndLines(a, "[", "]")
}

// variable lays out the answer for a data address, such as table[3].refs or name+0x18.
func (f *lineFilter) variable(a *answer, p *piece) {
	switch {
	case a.mod == nil:
		f.bracketedElement(p)
	case !a.hasText:
		f.unknown("", a, "")
	default:
		f.layout.Function(a.text.data())
	}
}

func (f *lineFilter) rawElement(p *piece) {
	raw := p.Raw
	if p.elem != nil {
		raw = p.appendRaw(nil)
	}
	f.layout.LogToken(&markup.Token{Raw: raw[:len(markupOpen)]})
	// the text without its braces is not an element, so LogBytes interprets its colours
	f.layout.LogBytes(raw[len(markupOpen):])
}

// bracketedElement lays out an element without an answer as LLVM's filter does: [[[pc:0x1234]]].
func (f *lineFilter) bracketedElement(p *piece) {
	raw := p.appendRaw(nil)
	f.layout.Unresolved("[[[" + escape.Clean(string(raw[3:len(raw)-3])) + "]]]")
}

func (f *lineFilter) rawPieces(pieces []piece) {
	for i := range pieces {
		if p := &pieces[i]; p.Kind == markup.Elem {
			f.rawElement(p)
		} else {
			f.layout.LogToken(&p.Token)
		}
	}
}

// footnoteTarget lays out the answer for a value in a footnote: a variable, or functions with their
// files and lines.
func (f *lineFilter) footnoteTarget(a *answer) {
	if a.text.data() != "" {
		f.layout.Function(a.text.data())
		return
	}
	f.functionsAndLines(a, " ", "")
}

// functionsAndLines lays out each call at an address. before and after are the texts around the
// file and line that follow the function.
func (f *lineFilter) functionsAndLines(a *answer, before, after string) {
	for i := range a.text.cuts {
		t := a.text.frame(i)
		if i > 0 {
			f.layout.Display.Breakable(len(f.layout.Buf))
			f.layout.Dim(" inlined into ")
		}
		f.layout.Display.Breakable(len(f.layout.Buf))
		f.layout.Function(t.Name)
		if t.File != "" {
			f.layout.Display.Breakable(len(f.layout.Buf))
			f.layout.Dim(before)
			f.layout.FileLine(&t, t.File, ":", false)
			if after != "" {
				f.layout.Dim(after)
			}
		}
	}
}
