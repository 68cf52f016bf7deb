package lines

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func (k Kind) String() string { return [...]string{"none", "whole", "head", "rest"}[k] }

// cutAll gives pieces to a Cutter of lines of up to 4 bytes, and lists what it returns.
func cutAll(pieces []string, next func(*Cutter, []byte) ([]byte, Kind, []byte)) (all []string) {
	c := Cutter{Max: 4}
	for _, piece := range pieces {
		for rest := []byte(piece); len(rest) > 0; {
			var b []byte
			var kind Kind
			b, kind, rest = next(&c, rest)
			all = append(all, fmt.Sprintf("%v %q", kind, b))
		}
	}
	if line, long := c.Finish(); len(line) > 0 || long {
		all = append(all, fmt.Sprintf("left %q %v", line, long))
	}
	return all
}

func TestLinesAreCut(t *testing.T) {
	for _, tt := range []struct{ pieces, blocks, lines string }{
		{"", "", ""},
		{"a$", `whole "a\n"`, `whole "a\n"`},
		{"a$b$$c", `whole "a\nb\n\n", none "", left "c" false`, `whole "a\n", whole "b\n", whole "\n", none "", left "c" false`},
		{"a|b|$c$", `none "", none "", whole "ab\n", whole "c\n"`, `none "", none "", whole "ab\n", whole "c\n"`},
		{"a|b$c$d$e", `none "", whole "ab\n", whole "c\nd\n", none "", left "e" false`, `none "", whole "ab\n", whole "c\n", whole "d\n", none "", left "e" false`},
		{"abcd$", `whole "abcd\n"`, `whole "abcd\n"`},
		{"ab|cd$", `none "", whole "abcd\n"`, `none "", whole "abcd\n"`},
		{"abcd", `none "", left "abcd" false`, `none "", left "abcd" false`},
		{"abcde$f$", `whole "abcde\nf\n"`, `head "abcd", rest "e\n", whole "f\n"`},
		{"abcde", `head "abcd", rest "e", left "" true`, `head "abcd", rest "e", left "" true`},
		{"ab|cdefg|h$i$", `none "", head "abcd", rest "efg", rest "h\n", whole "i\n"`, `none "", head "abcd", rest "efg", rest "h\n", whole "i\n"`},
		{"abcd|$e$", `none "", whole "abcd\n", whole "e\n"`, `none "", whole "abcd\n", whole "e\n"`},
		{"abcd|e$$", `none "", head "abcd", rest "e\n", whole "\n"`, `none "", head "abcd", rest "e\n", whole "\n"`},
	} {
		pieces := strings.Split(strings.ReplaceAll(tt.pieces, "$", "\n"), "|")
		if got := strings.Join(cutAll(pieces, (*Cutter).Block), ", "); got != tt.blocks {
			t.Errorf("blocks of %s: got\n%s, want\n%s", tt.pieces, got, tt.blocks)
		}
		if got := strings.Join(cutAll(pieces, (*Cutter).Line), ", "); got != tt.lines {
			t.Errorf("lines of %s: got\n%s, want\n%s", tt.pieces, got, tt.lines)
		}
	}
}

func TestALineThatIsGivenUpHasARest(t *testing.T) {
	c := Cutter{Max: 8}
	if got := c.GiveUp(); len(got) != 0 {
		t.Errorf("without an unfinished line: got %q", got)
	}
	c.Block([]byte("ab"))
	c.Block([]byte("c"))
	line, long := c.Unfinished()
	if string(line) != "abc" || long {
		t.Errorf("unfinished: got %q, %v", line, long)
	}
	c = Cutter{Max: 8}
	c.Resume(line, long)
	if got := c.GiveUp(); string(got) != "abc" {
		t.Errorf("given up: got %q", got)
	}
	b, kind, rest := c.Block([]byte("d\ne\n"))
	if string(b) != "d\n" || kind != Rest || string(rest) != "e\n" {
		t.Errorf("got %q, %v, %q", b, kind, rest)
	}
}

func TestWholeLinesAreNotCopied(t *testing.T) {
	c := Cutter{Max: 1 << 20}
	p := bytes.Repeat([]byte("a line\n"), 1000)
	if n := testing.AllocsPerRun(10, func() {
		if b, kind, rest := c.Block(p); kind != Whole || &b[0] != &p[0] || len(b) != len(p) || len(rest) != 0 {
			t.Errorf("got %d bytes, %v, and %d bytes are left", len(b), kind, len(rest))
		}
		for rest := p; len(rest) > 0; {
			b, _, after := c.Line(rest)
			if &b[0] != &rest[0] {
				t.Fatal("a line was copied")
			}
			rest = after
		}
	}); n != 0 {
		t.Errorf("got %v allocations", n)
	}
}

// After long lines, joined or in parts, the Cutter keeps little memory.
func TestLittleMemoryIsKept(t *testing.T) {
	c := Cutter{Max: 1 << 20}
	text := bytes.Repeat([]byte{'x'}, c.Max)
	for _, p := range [][]byte{text, {'\n'}, text, text, text, {'\n'}, text[:100], {'\n'}} {
		for len(p) > 0 {
			_, _, p = c.Block(p)
		}
		if n := cap(c.tail); n > 2*c.Max {
			t.Errorf("%d bytes are held", n)
		}
	}
	if n := cap(c.tail); n > maxKept {
		t.Errorf("%d bytes are kept", n)
	}
}

// However a stream is cut into pieces, the Cutter must return all of it, in order. It must return a
// line that is short enough as soon as the line ends. Line and Block must return the same, except
// for the parts of a Rest.
func FuzzCutter(f *testing.F) {
	f.Add([]byte("a\nbcdefghijk\n\nl"), []byte{1, 3}, uint8(4))
	f.Add([]byte("abcd\nabcde\nabcd"), []byte{4, 1, 1}, uint8(4))
	f.Fuzz(func(t *testing.T, stream, sizes []byte, limit uint8) {
		limit = max(limit, 1)
		var alone []string
		for i, way := range []func(*Cutter, []byte) ([]byte, Kind, []byte){(*Cutter).Line, (*Cutter).Line, (*Cutter).Block} {
			c := Cutter{Max: int(limit)}
			var out []byte
			var all []string
			left := stream
			for n := 0; len(left) > 0; n++ {
				size := len(left)
				if i > 0 && len(sizes) > 0 {
					size = min(size, 1+int(sizes[n%len(sizes)]))
				}
				p := left[:size]
				left = left[size:]
				for rest := p; len(rest) > 0; {
					var b []byte
					var kind Kind
					b, kind, rest = way(&c, rest)
					out = append(out, b...)
					if kind == Rest {
						all[len(all)-1] += string(b)
					} else if kind != None {
						all = append(all, kind.String()+" "+string(b))
					}
					line, long := c.Unfinished()
					if kind == Head && len(b) != c.Max || kind == Whole && b[len(b)-1] != '\n' || len(line) > c.Max || long && len(line) > 0 {
						t.Fatalf("got %v %q, unfinished %q, %v", kind, b, line, long)
					}
					c = Cutter{Max: c.Max}
					c.Resume(line, long)
				}
			}
			line, _ := c.Finish()
			out, all = append(out, line...), append(all, string(line))
			if !bytes.Equal(out, stream) {
				t.Errorf("got %q, want %q", out, stream)
			}
			if i == 0 {
				alone = all
			} else if i == 1 && !slices.Equal(all, alone) {
				t.Errorf("got %q, want %q", all, alone)
			}
		}
	})
}
