package input

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/unpack"
)

func utf16Of(order binary.AppendByteOrder, text string) string {
	var b []byte
	for _, c := range utf16.Encode([]rune(text)) {
		b = order.AppendUint16(b, c)
	}
	return string(b)
}

var (
	le = binary.LittleEndian
	be = binary.BigEndian
)

// UTF-16 with a byte order mark, packed or not, must become UTF-8, and must be reported once.
// UTF-16 without a mark must be reported and passed on unchanged. Bytes that only begin like UTF-16
// must be passed on unchanged.
func TestTextOfUTF16IsRead(t *testing.T) {
	const text = "frame \u00e9 \u4e0a \U0001f600\r\n{{{symbol:_Z1fv}}}\nno end"
	const same = "frame \u00e9 \u4e0a \U0001f600\r\n_Z1fv\nno end"
	long := strings.Repeat("\u4e0a", headSize)
	ascii := strings.Repeat("0 a line of ASCII\n", 300)
	russian := strings.Repeat("\u0441\u0442\u0440\u043e\u043a\u0430\n", 300)
	box := strings.Repeat(strings.Repeat("\u2550", 200)+"\r\n\u2551 in a box \u2551\r\n", 10)
	kana := strings.Repeat(strings.Repeat("\u3053\u308c\u306f\u9577\u3044\u884c\u3067\u3059", 50)+"\r\n", 10)
	for _, test := range []struct{ name, in, want, told string }{
		{"little-endian", markLE + utf16Of(le, text), same, "[UTF-16LE true]"},
		{"big-endian", markBE + utf16Of(be, text), same, "[UTF-16BE true]"},
		{"packed", packed(t, markLE+utf16Of(le, text)), same, "[UTF-16LE true]"},
		{"two files", markLE + utf16Of(le, "one\n") + markLE + utf16Of(le, "two\n") + markBE + utf16Of(be, "three\n"), "one\ntwo\nthree\n", "[UTF-16LE true]"},
		{"a mark within a line", markLE + utf16Of(le, "a\ufeffb\n"), "a\ufeffb\n", "[UTF-16LE true]"},
		{"halves of pairs", markLE + utf16Of(le, "a") + "\x00\xd8" + utf16Of(le, "b") + "\x00\xdc" + "\x00\xd8", "a\ufffdb\ufffd\ufffd", "[UTF-16LE true]"},
		{"half a unit", markBE + utf16Of(be, "ab") + "\x00", "ab\ufffd", "[UTF-16BE true]"},
		{"blanks late", markLE + utf16Of(le, long[:300]+" "), long[:300] + " ", "[UTF-16LE true]"},
		{"no mark, little-endian", utf16Of(le, "a line of a log\n"), utf16Of(le, "a line of a log\n"), "[UTF-16LE false]"},
		{"no mark, big-endian", utf16Of(be, "a line of a log\n"), utf16Of(be, "a line of a log\n"), "[UTF-16BE false]"},
		{"no mark, short", utf16Of(le, "short\n"), utf16Of(le, "short\n"), "[]"},
		{"other zeros", "a\x00b\x00cd\x00e\x00f\x00gh\x00i\x00j\x00k\x00\n", "a\x00b\x00cd\x00e\x00f\x00gh\x00i\x00j\x00k\x00\n", "[]"},
		{"zeros", strings.Repeat("\x00", 32), strings.Repeat("\x00", 32), "[]"},
		{"a mark alone", markLE, markLE, "[]"},
		{"half a mark", "\xff", "\xff", "[]"},
		{"a line of bytes", markLE + "bytes\nmore\n", markLE + "bytes\nmore\n", "[]"},
		{"UTF-32", markLE + "\x00\x00a\x00\x00\x00", markLE + "\x00\x00a\x00\x00\x00", "[UTF-32LE false]"},
		{"no UTF-32", markLE + "\x00\x00text", markLE + "\x00\x00text", "[]"},
		{"a line of UTF-16, and UTF-8", markLE + "A\x00" + ascii, "A" + ascii, "[UTF-16LE true]"},
		{"the same, big-endian", markBE + "\x00A" + ascii, "A" + ascii, "[UTF-16BE true]"},
		{"a few lines of UTF-8", markLE + "A\x00" + "1\n20\n3\n4", "A1\n20\n3\n4", "[UTF-16LE true]"},
		{"a log of UTF-16, and UTF-8 without ASCII", markLE + utf16Of(le, text+"\n") + russian, same + "\n" + russian, "[UTF-16LE true]"},
		{"a long line of UTF-8", markLE + "A\x00" + strings.Repeat("x", 5000), "A" + strings.Repeat("x", 5000), "[UTF-16LE true]"},
		{"an odd number of bytes, and UTF-8", markLE + "A\x00" + "\xff" + ascii, "A\xff" + ascii, "[UTF-16LE true]"},
		{"characters between, and UTF-8", markLE + utf16Of(le, "A\u4e0a\u0434") + ascii, "A\u4e0a\u0434" + ascii, "[UTF-16LE true]"},
		{"frames of a box", markLE + utf16Of(le, box), box, "[UTF-16LE true]"},
		{"Japanese", markLE + utf16Of(le, kana), kana, "[UTF-16LE true]"},
		{"a word of Gurmukhi", markLE + utf16Of(le, "a \u0a28\u0a3e\u0a2e"), "a \u0a28\u0a3e\u0a2e", "[UTF-16LE true]"},
		{"no character of Latin-1 in the head", markLE + utf16Of(le, long), markLE + utf16Of(le, long), "[]"},
	} {
		for _, block := range []int{1, 3, 1 << 20} {
			var out bytes.Buffer
			told := []string{}
			w := newRecorder(&out)
			w.t.Encoded = func(e Encoding) { told = append(told, fmt.Sprint(e, " ", e.Read())) }
			for at := 0; at < len(test.in); at += block {
				if _, err := io.WriteString(w, test.in[at:min(at+block, len(test.in))]); err != nil {
					t.Fatal(err)
				}
				checkHead(t, w)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if out.String() != test.want || fmt.Sprint(told) != test.told {
				t.Errorf("%s, in blocks of %d: got %q, told %v; want %q, told %v", test.name, block, out.String(), told, test.want, test.told)
			}
		}
	}
}

func TestReportsOfUTF16AreRecognised(t *testing.T) {
	in := markLE + utf16Of(le, report)
	var out taken
	w := New(Auto, Translators{Valgrind: func() io.WriteCloser { return &out }})
	io.WriteString(w, in)
	w.Close()
	if w.Format() != Valgrind || out.String() != report {
		t.Errorf("read as %v: %q", w.Format(), out.String())
	}
	for _, in := range []string{in, packed(t, in)} {
		r, done, err := Plain(strings.NewReader(in), unpack.NewMemory(0))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); string(got) != report || err != nil {
			t.Errorf("Plain: got %q, %v", got, err)
		}
		done()
	}
}

// A silence after a byte order mark must not decide the encoding, since a program may write the
// mark at its start, long before its first line.
func TestSilenceAfterAMarkDecidesNothing(t *testing.T) {
	var out bytes.Buffer
	w := newRecorder(&out)
	io.WriteString(w, markLE)
	if w.Undecided() || w.Unfinished() {
		t.Error("there is something to flush")
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	io.WriteString(w, utf16Of(le, "login: "))
	if !w.Unfinished() {
		t.Error("the prompt is not unfinished")
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if out.String() != "login: " {
		t.Errorf("after silence %q is out", out.String())
	}
	io.WriteString(w, utf16Of(le, "me\n"))
	w.Close()
	if out.String() != "login: me\n" {
		t.Errorf("got %q", out.String())
	}
}

func TestARestartWithinUTF16ChangesNothing(t *testing.T) {
	in := markBE + utf16Of(be, "{{{reset}}}\n{{{module:0:a.out:elf:abcd}}}\n{{{mmap:0x1000:0x1000:load:0:rx:0}}}\n\U0001f600 {{{pc:0x1004}}}\n")
	var want bytes.Buffer
	w := newRecorder(&want)
	io.WriteString(w, in)
	w.Close()
	for cut := range len(in) {
		var out bytes.Buffer
		w := newWriter(Auto, filter.Options{}, &out)
		io.WriteString(w, in[:cut])
		context, ok := w.AppendContext(nil)
		if !ok {
			t.Fatal("no context")
		}
		w = newWriter(Auto, filter.Options{}, &out)
		if err := w.Restore(context); err != nil {
			t.Fatal(err)
		}
		io.WriteString(w, in[cut:])
		w.Close()
		if out.String() != want.String() {
			t.Fatalf("cut at %d: got %q, want %q", cut, out.String(), want.String())
		}
	}
	w = newWriter(Auto, filter.Options{}, io.Discard)
	if err := w.Restore([]byte(`{"v":1,"input":"auto","utf16":{"half":"AAAA"}}`)); err == nil {
		t.Error("a damaged context is restored")
	}
}

// The text must be valid UTF-8 or the unchanged input, and at most three bytes for each unit. Block
// sizes must not change it, and Plain must return the same text.
func FuzzUTF16(f *testing.F) {
	f.Add([]byte(utf16Of(le, "one \u4e0a\U0001f600\n")), false, uint16(3))
	f.Add([]byte(utf16Of(be, "one\n\ufeff\ufffe\n\ufffetwo")), true, uint16(1))
	f.Add([]byte("a\x00\x00\xd8\x00\xdc\x00\xdc\x00\xd8b"), false, uint16(5))
	f.Fuzz(func(t *testing.T, units []byte, big bool, block uint16) {
		if len(units) > 16<<10 {
			return
		}
		in := markLE + "a\x00" + string(units)
		if big {
			in = markBE + "\x00a" + string(units)
		}
		var want string
		for i, n := range []int{len(in), int(block)%100 + 1, 1} {
			var out bytes.Buffer
			asIs := func() io.WriteCloser { return plain{&out} }
			w := New(Markup, Translators{Markup: asIs})
			for at := 0; at < len(in); at += n {
				io.WriteString(w, in[at:min(at+n, len(in))])
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				want = out.String()
			}
			got := out.String()
			isUTF8 := utf8.ValidString(got) || strings.HasSuffix(in, got[max(0, len(got)-2):]) // passed on unchanged
			if got != want || !isUTF8 || len(got) > 3*(len(in)/2+1) {
				t.Fatalf("in blocks of %d: got %q, want %q", n, got, want)
			}
		}
		r, done, err := Plain(strings.NewReader(in), unpack.NewMemory(0))
		if err != nil {
			t.Fatal(err)
		}
		defer done()
		if got, err := io.ReadAll(r); string(got) != want || err != nil {
			t.Fatalf("Plain: got %q, %v; want %q", got, err, want)
		}
	})
}
