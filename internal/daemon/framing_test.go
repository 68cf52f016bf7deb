package daemon

import (
	"bytes"
	"strings"
	"testing"
)

// cutUp returns the lines of a stream that arrives in pieces. The sizes of the pieces repeat.
func cutUp(f *framer, stream []byte, sizes ...int) []byte {
	var got []byte
	for i := 0; len(stream) > 0; i++ {
		room := f.room()
		n := copy(room[:min(len(room), sizes[i%len(sizes)])], stream)
		stream = stream[n:]
		got = append(got, f.take(n)...)
	}
	return append(got, f.rest()...)
}

func TestStreamsAreCutIntoLines(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for _, tt := range []struct {
		name, framing, in, want string
	}{
		{"lines", "lines", "one\ntwo\n", "one\ntwo\n"},
		{"a last line without an end", "lines", "one\ntwo", "one\ntwo\n"},
		{"NUL and CR", "lines", "a\x00b\r\n", "a\x00b\r\n"},
		{"a line beyond the limit", "lines", long + "\nnext\n", long[:4096] + "\n" + long[4096:] + "\nnext\n"},
		{"a length is text", "lines", "3 abc\n", "3 abc\n"},
		{"octets", "octets", "5 <1>ab5 <1>cd", "<1>ab\n<1>cd\n"},
		{"a message with a line end", "octets", "6 <1>ab\n5 <1>cd", "<1>ab\n<1>cd\n"},
		{"a line end that is not counted", "octets", "5 <1>ab\n5 <1>cd\n", "<1>ab\n<1>cd\n"},
		{"a message of several lines", "octets", "8 <1>a\nb\nc5 <1>cd", "<1>a\nb\nc\n<1>cd\n"},
		{"a message that is cut", "octets", "9 <1>ab", "<1>ab\n"},
		{"a length beyond the limit", "octets", "5000 <1>ab\n5 <1>cd", "5000 <1>ab\n<1>cd\n"},
		{"an endless length", "octets", "99999999999999999999 <1>ab\n5 <1>cd", "99999999999999999999 <1>ab\n<1>cd\n"},
		{"a negative length", "octets", "-5 <1>ab\n5 <1>cd", "-5 <1>ab\n<1>cd\n"},
		{"no length", "octets", "<1>ab\n5 <1>cd", "<1>ab\n<1>cd\n"},
		{"length 0", "octets", "0 \n5 <1>cd", "0 \n<1>cd\n"},
		{"a length that is too small", "octets", "3 <1>ab\n5 <1>cd", "<1>\nab\n<1>cd\n"},
		{"a length without a message", "octets", "5", "5\n"},
		{"endless text in the place of a length", "octets", long + "\n5 <1>cd", long[:4096] + "\n" + long[4096:] + "\n<1>cd\n"},
		{"either: octets", "auto", "5 <1>ab5 <1>cd", "<1>ab\n<1>cd\n"},
		{"either: lines", "auto", "<1>ab\n5 <1>cd\n", "<1>ab\n5 <1>cd\n"},
		{"either: a line that begins with a number", "auto", "5 apples\n", "5 apples\n"},
		{"either: a number alone", "auto", "5\n6 <1>x\n", "5\n6 <1>x\n"},
		{"nothing", "auto", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, sizes := range [][]int{{1}, {2, 3}, {7, 1, 4096}, {1 << 20}} {
				way, err := framingOf(tt.framing)
				if err != nil {
					t.Fatal(err)
				}
				f := &framer{framing: way, most: 4096, end: true}
				if got := cutUp(f, []byte(tt.in), sizes...); string(got) != tt.want {
					t.Errorf("pieces of %v: got %.200q, want %.200q", sizes, got, tt.want)
				}
			}
		})
	}
	if _, err := framingOf("nul"); err == nil {
		t.Error("framing nul is taken")
	}
}

// The buffer of a stream must shrink to 4 KiB after small reads. For bytes beyond one block, the
// framer must ask grow, and release them later.
func TestBuffersOfStreamsAreBounded(t *testing.T) {
	asked, most := 0, 0
	f := &framer{most: 1 << 20, end: true, grow: func(n int) bool {
		asked += n
		most = max(most, asked)
		return true
	}}
	cutUp(f, bytes.Repeat([]byte("x"), 3<<20), 1<<20)
	if most != 1<<20-block {
		t.Errorf("at most %d bytes were asked for, want %d", most, 1<<20-block)
	}
	for range 2 * shrinkFrom {
		f.take(copy(f.room(), "line\n"))
	}
	f.room()
	if len(f.buf) != smallFrame || asked != 0 {
		t.Errorf("a quiet stream has %d bytes, and %d beyond a block", len(f.buf), asked)
	}
	f = &framer{most: 1 << 20, grow: func(n int) bool { return n < 0 }}
	lines := 0
	for range 200 {
		lines += len(f.take(copy(f.room(), bytes.Repeat([]byte("x"), 4096))))
		if len(f.buf) > block {
			t.Fatalf("%d bytes although they were refused", len(f.buf))
		}
	}
	if lines == 0 {
		t.Error("the line is held back, although there is no memory for it")
	}
}

// The lengths that a stream states for its messages may be wrong. The framer must lose no letter,
// and its buffer must stay small.
func FuzzFraming(f *testing.F) {
	for _, s := range []string{"5 <1>ab", "-1 x\n", "99999999999 x", "5000 <1>x\n", "a\nb", "0 \x00\n"} {
		f.Add([]byte(s), uint8(3), uint8(1))
	}
	f.Fuzz(func(t *testing.T, stream []byte, piece, way uint8) {
		fr := &framer{framing: framing(way % 3), most: 512, end: true}
		got := cutUp(fr, stream, int(piece)+1)
		if len(fr.buf) > smallFrame {
			t.Fatalf("the buffer has %d bytes", len(fr.buf))
		}
		if n := len(got); n > 0 && got[n-1] != '\n' {
			t.Errorf("the last line has no end: %q", got)
		}
		left := letters(got)
		for _, c := range letters(stream) {
			i := bytes.IndexByte(left, c)
			if i < 0 {
				t.Fatalf("%q of %q is missing in %q", c, stream, got)
			}
			left = left[i+1:]
		}
	})
}

// letters returns b without line ends, without digits and blanks, which may be part of a length,
// and without invalid UTF-8.
func letters(b []byte) []byte {
	return bytes.Map(func(r rune) rune {
		if r == '\n' || r == ' ' || r >= '0' && r <= '9' || r == 0xfffd {
			return -1
		}
		return r
	}, b)
}
