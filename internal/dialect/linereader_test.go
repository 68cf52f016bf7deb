package dialect

import (
	"encoding/binary"
	"slices"
	"testing"
)

func TestAnchorsAreFoundAtTheirLastByte(t *testing.T) {
	for a, text := range anchorText {
		line := []byte("  " + text)
		got, at, ok := anchorTo(line, len(line)-1)
		if got != anchor(a) || at != 2 || !ok || !ends[line[len(line)-1]] {
			t.Errorf("%q: got anchor %d at %d, %t", text, got, at, ok)
		}
		for i := range text {
			other := []byte("  " + text)
			other[2+i] = '~'
			if _, at, ok := anchorTo(other, len(other)-1); ok && i < len(text)-1 {
				t.Errorf("%q has an anchor at %d", other, at)
			}
			if i == len(text)-1 {
				continue
			}
			if _, _, ok := anchorTo([]byte(text[i+1:]), len(text)-i-2); ok {
				t.Errorf("%q has an anchor", text[i+1:])
			}
		}
	}
}

func TestHexPrefixCountsDigits(t *testing.T) {
	for c := range 256 {
		for i := range 8 {
			b := []byte("09afAF5c")
			b[i] = byte(c)
			want := 8
			if !isHex(byte(c)) {
				want = i
			}
			if got := hexPrefix(binary.LittleEndian.Uint64(b)); got != want {
				t.Errorf("%q: got %d digits, want %d", b, got, want)
			}
		}
	}
}

// The caches that earlier lines have filled must not change how a line is read.
func TestLinesAreReadAlikeWhateverWasReadBefore(t *testing.T) {
	for _, c := range []struct{ before, line string }{
		{"    #0 0x55c551eb60d9 (/opt/a+0x340d9) (BuildId: 3a0a920c)", "\t#0 0x55c551eb60d9 (/opt/a+0x340d9) (BuildId: 3a0a920c)"},
		{" ledger_settle+0x10/0x28", " ledger_settle+0x10/0x28 [ledger"},
		{" ledger_settle+0x10/0x28", " ledger_settle+0x10/0x28 [ledger 5eda1a9afb2ba2"},
	} {
		fresh, warm := NewReader(nil), NewReader(nil)
		if l := warm.Line([]byte(c.before), 1); l == nil || len(l.Frames) != 1 {
			t.Fatalf("%q has no frame", c.before)
		}
		warm.Reset()
		names := func(r *Reader) (all []string) {
			if l := r.Line([]byte(c.line), 1); l != nil {
				for i := range l.Frames {
					all = append(all, l.Frames[i].Dialect.Name+" "+l.Frames[i].Module)
				}
			}
			return all
		}
		if got, want := names(warm), names(fresh); !slices.Equal(got, want) {
			t.Errorf("%q after %q: got %q, want %q", c.line, c.before, got, want)
		}
	}
}
