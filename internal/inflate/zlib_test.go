package inflate

import (
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"go.uber.org/goleak"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func deflate(t testing.TB, data []byte, level int) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := zlib.NewWriterLevel(&b, level)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func inflate(packed []byte, size int) ([]byte, error) {
	buf := bytes.Repeat([]byte{0xa5}, size+Slack+8)
	err := Zlib(buf[:size+Slack], size, bytes.NewReader(packed), nil)
	if string(buf[size+Slack:]) != strings.Repeat("\xa5", 8) {
		return nil, errors.New("written behind the buffer")
	}
	return buf[:size], err
}

// samples are data of different kinds, each exercising another part of the decoder.
func samples(t testing.TB) map[string][]byte {
	random := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 300<<10)
	skewed := make([]byte, 1<<20)
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	for i := range skewed {
		skewed[i] = byte(random.ExpFloat64() * 9) // codes of many lengths, long ones too
	}
	self, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{
		"nothing": nil, "a byte": []byte("x"), "noise": noise, "skewed": skewed, "zeros": make([]byte, 1<<20),
		"a program": self[:min(len(self), 1<<20)], "text": bytes.Repeat([]byte("all work and no play makes Jack a dull boy\n"), 20000),
	}
	for distance := 1; distance < 20; distance++ {
		all[fmt.Sprintf("a pattern of %d", distance)] = bytes.Repeat(noise[:distance], 3000)
	}
	for size := 2; size < 40; size++ {
		all[fmt.Sprintf("%d bytes of %d", size, size%7+1)] = bytes.Repeat(noise[:size%7+1], 40)[:size]
	}
	return all
}

func TestZlibInflatesWhatWasDeflated(t *testing.T) {
	fuzztest.WithoutRace(t)
	for name, data := range samples(t) {
		for _, level := range []int{zlib.NoCompression, zlib.BestSpeed, 6, zlib.BestCompression, zlib.HuffmanOnly} {
			packed := deflate(t, data, level)
			got, err := inflate(packed, len(data))
			if err != nil || !bytes.Equal(got, data) {
				t.Errorf("%s, level %d: %v, equal %v", name, level, err, bytes.Equal(got, data))
			}
			if _, err := inflate(packed, len(data)+1); !errors.Is(err, ErrCorrupt) {
				t.Errorf("%s, level %d: a byte more: %v", name, level, err)
			}
			if len(data) > 0 {
				if _, err := inflate(packed, len(data)-1); !errors.Is(err, ErrCorrupt) {
					t.Errorf("%s, level %d: a byte less: %v", name, level, err)
				}
			}
		}
	}
}

func TestZlibReadsFromAnyReader(t *testing.T) {
	data := samples(t)["a program"][:600<<10]
	packed := deflate(t, data, 6)
	buf := make([]byte, len(data)+Slack)
	for name, r := range map[string]io.Reader{
		"halves": iotest.HalfReader(bytes.NewReader(packed)), "errors late": iotest.DataErrReader(bytes.NewReader(packed)),
		"more behind": bytes.NewReader(append(bytes.Clone(packed), "more"...)),
	} {
		clear(buf)
		if err := Zlib(buf, len(data), r, nil); err != nil || !bytes.Equal(buf[:len(data)], data) {
			t.Errorf("%s: %v", name, err)
		}
	}
	broken := errors.New("input/output error")
	if err := Zlib(buf, len(data), io.MultiReader(bytes.NewReader(packed[:1000]), iotest.ErrReader(broken)), nil); err != broken {
		t.Errorf("a reader that fails: %v", err)
	}
	if err := Zlib(buf[:len(data)], len(data), bytes.NewReader(packed), nil); err == nil {
		t.Error("a buffer without slack: no error")
	}
}

func TestZlibOfPartsAndDamage(t *testing.T) {
	fuzztest.WithoutRace(t)
	data := samples(t)["a program"][:1500]
	for _, level := range []int{zlib.NoCompression, 6, zlib.HuffmanOnly} {
		packed := deflate(t, data, level)
		for n := range packed {
			if _, err := inflate(packed[:n], len(data)); !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, ErrCorrupt) {
				t.Fatalf("the first %d of %d bytes: %v", n, len(packed), err)
			}
		}
		for i := range packed {
			for _, bit := range []byte{1, 0x80, 0x10} {
				b := bytes.Clone(packed)
				b[i] ^= bit
				got, err := inflate(b, len(data))
				if err == nil && !bytes.Equal(got, data) {
					t.Fatalf("byte %d changed: no error", i)
				}
			}
		}
	}
	for _, bad := range []string{"", "x", "\x78\x9d", "\x79\x9c\x01", "\x88\x1c\x03\x00", "\x78\xbb\x03\x00", "\x78\x9c\x07\x00\x00\x00"} {
		if _, err := inflate([]byte(bad), 10); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

func FuzzZlib(f *testing.F) {
	for _, data := range samples(f) {
		if len(data) < 100 {
			f.Add(deflate(f, data, 6), uint16(len(data)))
		}
	}
	f.Add(deflate(f, samples(f)["skewed"][:3000], zlib.HuffmanOnly), uint16(3000))
	f.Add(deflate(f, samples(f)["a program"][:5000], 9), uint16(5000))
	f.Fuzz(func(t *testing.T, packed []byte, size uint16) {
		t.Cleanup(fuzztest.Watch(t, packed))
		// Set a matching checksum: without it, all inputs would fail by the checksum.
		z, err := zlib.NewReader(bytes.NewReader(packed))
		if err != nil {
			if _, err := inflate(packed, int(size)); err == nil {
				t.Error("inflates what has no header")
			}
			return
		}
		want := make([]byte, int(size)+1)
		n, err := io.ReadFull(z, want)
		got, gotErr := inflate(packed, int(size))
		if (err == io.ErrUnexpectedEOF || err == io.EOF) && n == int(size) && z.Close() == nil {
			// All output was read; only the last error shows whether the stream ended correctly.
			if _, err := io.Copy(io.Discard, z); err == nil && gotErr != nil {
				t.Errorf("%v; the standard library reads %d bytes", gotErr, n)
			}
		}
		if gotErr == nil && !bytes.Equal(got, want[:min(n, len(got))]) {
			t.Errorf("%d bytes, want %d others", len(got), n)
		}
	})
}

func BenchmarkZlib(b *testing.B) {
	data := samples(b)["a program"]
	packed := deflate(b, data, 6)
	buf := make([]byte, len(data)+Slack)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if err := Zlib(buf, len(data), bytes.NewReader(packed), nil); err != nil {
			b.Fatal(err)
		}
	}
}

// Pages must be made present in the order of the output. If a stream ends early, few more pages
// than it fills may be made present, whatever size it claims.
func TestPagesAreMadePresentInOrderAndNotFarAhead(t *testing.T) {
	data := bytes.Repeat(samples(t)["a program"][:1<<20], 16)
	packed := deflate(t, data, 1)
	for _, part := range []int{len(packed), len(packed) / 4} {
		buf := make([]byte, len(data)+Slack)
		present, calls := 0, 0
		err := Zlib(buf, len(data), bytes.NewReader(packed[:part]), func(b []byte) {
			if calls++; &b[0] != &buf[present] {
				t.Errorf("call %d is not for the bytes from %d on", calls, present)
			}
			present += len(b)
		})
		if (err == nil) != (part == len(packed)) {
			t.Errorf("%d of %d bytes: %v", part, len(packed), err)
		}
		most := len(data)
		if err != nil {
			most = len(data)/4 + populateAhead + 2*populateStep
		}
		if present > most || err == nil && present != len(data) {
			t.Errorf("%d of %d bytes: %d bytes are made present, want at most %d", part, len(packed), present, most)
		}
	}
}

// unreadable is a panic of the runtime for an address that cannot be read.
type unreadable struct{ error }

func (unreadable) Addr() uintptr { return 0 }

// If a page of the buffer cannot be read, Zlib must return an error. Every other panic of the
// goroutine is a mistake in the program, and must become a panic of Zlib.
func TestOnlyFaultsOfTheBufferAreErrors(t *testing.T) {
	data := samples(t)["text"]
	packed := deflate(t, data, 6)
	for _, test := range []struct {
		name  string
		value any // of the panic
		want  string
	}{
		{"a fault", unreadable{}, "inflate: the buffer cannot be read"},
		{"an index", errors.New("index out of range"), "panic: index out of range"},
	} {
		got := func() (got string) {
			defer func() {
				if r := recover(); r != nil {
					got = fmt.Sprint("panic: ", r)
				}
			}()
			return fmt.Sprint(Zlib(make([]byte, len(data)+Slack), len(data), bytes.NewReader(packed), func([]byte) { panic(test.value) }))
		}()
		if got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}
