package filter

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// searched must return lines in envelopes unchanged, unless their texts may be arrays of bytes. In
// that case it must remove the envelopes, since a search finds nothing in such arrays.
func TestThePastIsSearchedForHeaders(t *testing.T) {
	const header = "Stack dump:\n"
	array := []byte(`{"MESSAGE":` + fmt.Sprint([]byte(header)) + "}\n")
	opened := 0
	p := past{tail: array, unwrap: func(dst, lines []byte) []byte {
		opened++
		return append(dst, header...)
	}}
	if got := p.searched(1); string(got) != header || opened != 1 {
		t.Errorf("an array of bytes: got %q, opened %d times", got, opened)
	}
	p.tail = []byte(`{"msg":"Stack dump:"}` + "\n")
	if got := p.searched(1); !bytes.Equal(got, p.tail) || opened != 1 {
		t.Errorf("a string: got %q, opened %d times", got, opened)
	}
	p.block = []byte("a\nb\nc\n")
	for n, want := range []string{"", "c\n", "b\nc\n", "a\nb\nc\n", string(p.tail) + "a\nb\nc\n"} {
		if got := p.raw(int64(n)); string(got) != want {
			t.Errorf("the last %d lines: got %q, want %q", n, got, want)
		}
	}
}

// last must return the last lines of text, although most lines of a journal entry have no text.
func TestLastLinesAreLinesOfText(t *testing.T) {
	p := past{unwrap: func(dst, lines []byte) []byte {
		if bytes.HasPrefix(lines, newline) {
			dst = append(dst, '\n') // an empty text, or the end of an entry
		}
		for line := range bytes.Lines(lines) {
			if text, ok := bytes.CutPrefix(line, []byte("MESSAGE=")); ok {
				dst = append(dst, text...)
			}
		}
		return dst
	}}
	for _, text := range []string{"a", "b", "c"} {
		p.tail = append(p.tail, strings.Repeat("_FIELD=1\n", 30)+"MESSAGE="+text+"\n_END=1\n\n"...)
	}
	for n, want := range []string{"", "c\n", "b\nc\n", "a\nb\nc\n", "a\nb\nc\n"} {
		if got := p.last(int64(n)); string(got) != want {
			t.Errorf("the last %d lines: got %q, want %q", n, got, want)
		}
	}
}
