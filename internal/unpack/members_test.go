package unpack

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

const text = "a line of a log\nand another\n"

// packed returns text in each format.
func packed(t testing.TB) map[*Format][]byte {
	t.Helper()
	var inGzip, inXZ bytes.Buffer
	g := gzip.NewWriter(&inGzip)
	x, err := xz.NewWriter(&inXZ)
	if err != nil {
		t.Fatal(err)
	}
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []io.WriteCloser{g, x} {
		io.WriteString(w, text)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	// Made by bzip2 1.0.8: the standard library has no writer.
	inBzip2, err := base64.StdEncoding.DecodeString("QlpoOTFBWSZTWWD+q0sAAAPRgAAQQAAn5ZQAIAAxAAAGp6hmpo2paUyFKJ8KsNwOM50qXxdyRThQkGD+q0s=")
	if err != nil {
		t.Fatal(err)
	}
	return map[*Format][]byte{Gzip: inGzip.Bytes(), XZ: inXZ.Bytes(), Zstd: z.EncodeAll([]byte(text), nil), Bzip2: inBzip2}
}

// All must unpack a file of one or more members. If the file is cut off, or other bytes follow it,
// All must return an error.
func TestAllIsTheWholeFile(t *testing.T) {
	for f, whole := range packed(t) {
		for _, test := range []struct {
			name, in string
			most     int
			want     string
		}{
			{"whole", string(whole), 16 << 20, text + " <nil>"},
			{"two", string(whole) + string(whole), 16 << 20, text + text + " <nil>"},
			{"a byte more", string(whole) + "x", 16 << 20, " bytes that are not " + f.String() + " follow the file"},
			{"cut off", string(whole[:len(whole)-1]), 16 << 20, " unexpected EOF"},
			{"text", f.magics[0], 16 << 20, " "},
		} {
			got, err := f.All(strings.NewReader(test.in), test.most)
			if said := fmt.Sprintf("%s %v", got, err); !strings.HasPrefix(said, test.want) || said == " <nil>" {
				t.Errorf("%s, %s: got %q, want %q", f, test.name, said, test.want)
			}
		}
	}
	long := bytes.Repeat(packed(t)[Gzip], 100)
	if got, err := Gzip.All(bytes.NewReader(long), len(text)*100-1); got != nil || err == nil {
		t.Errorf("a file of %d bytes: %d bytes, %v", len(text)*100, len(got), err)
	}
}

// FuzzReader changes compressed files. Every byte must be unpacked, passed on or counted as lost,
// and text must not be lost.
func FuzzReader(f *testing.F) {
	for _, whole := range packed(f) {
		f.Add(whole, uint16(7))
		f.Add(append(bytes.Clone(whole), whole[:len(whole)-5]...), uint16(1))
		f.Add(append(bytes.Clone(whole), text...), uint16(3))
		f.Add([]byte(string(whole)+string(whole[:len(whole)-7])+strings.Repeat("text\n", 30)), uint16(3))
	}
	f.Add([]byte("\x50\x2a\x4d\x18\x01\x00\x00\x00x"), uint16(3))
	f.Fuzz(func(t *testing.T, in []byte, block uint16) {
		format, _ := FormatOf(in)
		if len(in) > 16<<10 || format == nil {
			return
		}
		t.Cleanup(fuzztest.Watch(t, in))
		m := format.NewReader(iotest.OneByteReader(bytes.NewReader(in)), NewMemory(16<<20))
		defer m.Close()
		var rest []byte
		p := make([]byte, 1+int(block)%100)
		damage := error(nil)
		for {
			n, err := m.Read(p)
			if m.rest != nil && err == nil {
				rest = append(rest, p[:n]...)
			}
			if err == io.EOF {
				break
			}
			if err != nil {
				if damage != nil {
					t.Fatalf("a second error: %v after %v", err, damage)
				}
				damage = err
			}
		}
		from := int(m.tape.mark)
		switch {
		case damage != nil:
			lost := in[from : from+int(m.salvage.lost)]
			for i := 0; i+TextRun <= len(lost); i++ {
				if TextLen(lost[i:i+TextRun]) == TextRun {
					t.Fatalf("text is lost: %q", lost[i:])
				}
			}
			from += len(lost)
		case m.rest == nil:
			from = int(m.at())
		}
		if !bytes.Equal(rest, in[from:]) {
			t.Fatalf("%q is printed after what is unpacked or lost, want %q", rest, in[from:])
		}
	})
}
