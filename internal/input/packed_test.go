package input

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/unpack"
)

const gzipMagic = "\x1f\x8b\x08"

// bzip2Data is bzip2Text, compressed by bzip2 1.0.8, since the standard library cannot write bzip2.
const (
	bzip2Text = "a line of a log\nand another\n"
	bzip2Data = "QlpoOTFBWSZTWWD+q0sAAAPRgAAQQAAn5ZQAIAAxAAAGp6hmpo2paUyFKJ8KsNwOM50qXxdyRThQkGD+q0s="
	bzip2None = "QlpoORdyRThQkAAAAAA=" // an empty file
)

func unbase64(s string) string {
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// packers make writers of gzip, zstd and xz. After a flush, a reader can unpack all that was
// written.
var packers = map[string]func(io.Writer) interface {
	io.WriteCloser
	Flush() error
}{
	"gzip": func(w io.Writer) interface {
		io.WriteCloser
		Flush() error
	} {
		return gzip.NewWriter(w)
	},
	"zstd": func(w io.Writer) interface {
		io.WriteCloser
		Flush() error
	} {
		z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
		if err != nil {
			panic(err)
		}
		return z
	},
	"xz": func(w io.Writer) interface {
		io.WriteCloser
		Flush() error
	} {
		z, err := xz.NewWriter(w)
		if err != nil {
			panic(err)
		}
		return unflushed{z}
	},
}

// An unflushed is a writer whose Flush does nothing.
type unflushed struct{ io.WriteCloser }

func (unflushed) Flush() error { return nil }

func packedBy(t testing.TB, name, text string) string {
	t.Helper()
	if name == "bzip2" {
		if text != bzip2Text {
			t.Fatal("only bzip2Text is packed")
		}
		return unbase64(bzip2Data)
	}
	var b bytes.Buffer
	z := packers[name](&b)
	if _, err := io.WriteString(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// unpackedIn writes an input to a new Writer, in blocks, and returns its output.
func unpackedIn(t *testing.T, in string, block int, memory *unpack.Memory) (string, error) {
	t.Helper()
	var out taken
	w := New(Auto, Translators{Markup: func() io.WriteCloser { return &out }, Memory: memory})
	for i := 0; i < len(in); i += block {
		if _, err := w.Write([]byte(in[i:min(i+block, len(in))])); err != nil {
			t.Fatal(err)
		}
	}
	err := w.Close()
	if out.closed != 1 {
		t.Errorf("closed %d times", out.closed)
	}
	if _, ok := errors.AsType[*UnpackError](err); err != nil && !ok {
		t.Errorf("%T is not an UnpackError", err)
	}
	return out.String(), err
}

// Each compressed format must be unpacked, alone and repeated. Bytes after it, and text before and
// after damage, must be printed. An input that only begins like the format must be printed
// unchanged.
func TestCompressedInputsAreUnpacked(t *testing.T) {
	log := strings.Repeat("a line that is not packed \u00e9\n", 20)
	for _, name := range []string{"gzip", "zstd", "xz", "bzip2"} {
		text := bzip2Text
		whole := packedBy(t, name, text)
		f, _ := unpack.FormatOf([]byte(whole))
		if f == nil || f.String() != name {
			t.Fatalf("%s is not recognised", name)
		}
		magic := map[string]string{"gzip": gzipMagic, "zstd": "\x28\xb5\x2f\xfd", "xz": "\xfd7zXZ\x00", "bzip2": "BZh11AY&SY"}[name]
		line := magic + " is not packed\nmore\n"
		if name == "bzip2" {
			line = "BZh9 is not packed\n"
		}
		cut := "the " + name + " file is cut off; the contents before its end are printed"
		damage := "not a valid " + name + " file"
		flipped := whole[:len(whole)/2] + string(whole[len(whole)/2]^0x55) + whole[len(whole)/2+1:]
		for _, test := range []struct{ name, in, out, err string }{
			{"whole", whole, text, "<nil>"},
			{"three", whole + whole + whole, text + text + text, "<nil>"},
			{"a line that begins like it", line, line, "<nil>"},
			{"a part of its beginning", magic[:2], magic[:2], "<nil>"},
			{"cut", whole[:len(whole)-3], "", cut},
			{"a byte after it", whole + "\n", text + "\n", "<nil>"},
			{"a few bytes after it", whole + "end\n", text + "end\n", "<nil>"},
			{"a log after it", whole + log, text + log, "<nil>"},
			{"a log after two", whole + whole + log, text + text + log, "<nil>"},
			{"a beginning after it", whole + whole[:2], text + whole[:2], "<nil>"},
			{"bytes after it", whole + "\x01\xff", text + "\x01\xff", "<nil>"},
			{"another format after it", whole + "\x1f\x9dother", text + "\x1f\x9dother", "<nil>"},
			{"damaged, and a log", flipped + log, "", damage},
		} {
			first, firstErr := unpackedIn(t, test.in, 1<<20, nil)
			for _, block := range []int{1, 7, 1 << 20} {
				got, err := unpackedIn(t, test.in, block, nil)
				if got != first || fmt.Sprint(err) != fmt.Sprint(firstErr) {
					t.Errorf("%s, %s, in blocks of %d: got %q, %v; in one %q, %v", name, test.name, block, got, err, first, firstErr)
				}
			}
			if !strings.HasPrefix(fmt.Sprint(firstErr), test.err) && !(test.name == "damaged, and a log" && first == test.in) {
				t.Errorf("%s, %s: got error %v, want %s", name, test.name, firstErr, test.err)
			}
			if test.out != "" && first != test.out {
				t.Errorf("%s, %s: got %q, want %q", name, test.name, first, test.out)
			}
			if strings.HasSuffix(test.in, log) && !strings.HasSuffix(first, log) {
				t.Errorf("%s, %s: the log is not printed: %.200q, %v", name, test.name, first, firstErr)
			}
		}
		memory := unpack.NewMemory(unpack.DefaultMemory)
		r, done, err := Plain(strings.NewReader(whole+log), memory)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if done(); memory.Left() != unpack.DefaultMemory {
			t.Errorf("%s: Plain keeps %d bytes", name, unpack.DefaultMemory-memory.Left())
		}
		if string(got) != text+log || err != nil {
			t.Errorf("%s: Plain returns %q, %v", name, got, err)
		}
	}
}

func TestLossesOfDamagedInputsAreCounted(t *testing.T) {
	log := strings.Repeat("a line that is not packed\n", 3)
	for _, test := range []struct {
		name, in, out string
		lost          int64
	}{
		{"a stored block, and a bad one", "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03" + "\x00\x05\x00\xfa\xffline\n" + "\x07\x01\x02" + log, "line\n" + log, 13},
		{"without text", "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03" + "\x00\x05\x00\xfa\xffline\n" + "\x07\x01\x02", "line\n", 13},
		{"a short line", "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03" + "\x00\x05\x00\xfa\xffline\n" + "\x07\x01\x02end\n", "line\nend\n", 13},
		{"a short block, and a bad one", "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03" + "\xca\x04\x00" + log, "i" + log, 3},
		{"a member, and a damaged one", packed(t, "line\n") + gzipMagic + " no\x01member\n" + log, "line\nmember\n" + log, 7},
		{"a window of 1 GiB", "\x28\xb5\x2f\xfd\x00\xa0" + log, log, 6},
	} {
		got, err := unpackedIn(t, test.in, 1<<20, nil)
		damage, _ := errors.AsType[*UnpackError](err)
		if damage == nil || got != test.out {
			t.Errorf("%s: got %q, %v, want %q", test.name, got, err, test.out)
		}
		if damage != nil && damage.Lost != test.lost {
			t.Errorf("%s: %d bytes are lost, want %d", test.name, damage.Lost, test.lost)
		}
	}
}

// Damage must be reported at once, since the end of a followed input may come much later.
func TestDamageIsReportedAtOnce(t *testing.T) {
	for _, name := range []string{"gzip", "zstd", "xz", "bzip2"} {
		whole := packedBy(t, name, bzip2Text)
		if name == "zstd" { // the checksum is compared before the last block is passed on
			whole = packedBy(t, name, strings.Repeat(bzip2Text, 10_000))
		}
		synctest.Test(t, func(t *testing.T) {
			var out taken
			var damage []string
			w := New(Auto, Translators{
				Markup:  func() io.WriteCloser { return &out },
				Damaged: func(e *UnpackError) { damage = append(damage, e.Error()) },
			})
			io.WriteString(w, whole+whole[:len(whole)-4]+strings.Repeat("not packed\n", 20))
			synctest.Wait()
			before := fmt.Sprint(damage)
			io.WriteString(w, "more\n")
			err := w.Close()
			if want := fmt.Sprintf("[%v]", err); err == nil || before != want || fmt.Sprint(damage) != want || !strings.HasSuffix(out.String(), "not packed\nnot packed\nmore\n") {
				t.Errorf("%s: %q is out, %s is reported before the end, %v in all, %v by Close", name, out.String(), before, damage, err)
			}
		})
	}
}

// Empty files, padding and skippable frames must not disturb unpacking. pzstd begins files with a
// skippable frame.
func TestOddCompressedInputs(t *testing.T) {
	skippable := "\x50\x2a\x4d\x18\x04\x00\x00\x00\x01\x02\x03\x04"
	long := "\x5e\x2a\x4d\x18\x00\x20\x00\x00" + strings.Repeat("\x01", 8<<10)
	for name, test := range map[string]struct{ in, want string }{
		"nothing, zstd":     {packedBy(t, "zstd", ""), ""},
		"nothing, xz":       {packedBy(t, "xz", ""), ""},
		"nothing, bzip2":    {unbase64(bzip2None), ""},
		"a skippable frame": {skippable + packedBy(t, "zstd", "text\n"), "text\n"},
		"padding, gzip":     {packedBy(t, "gzip", "text\n") + strings.Repeat("\x00", 999), "text\n"},
		"padding, xz":       {packedBy(t, "xz", "text\n") + "\x00\x00\x00\x00" + packedBy(t, "xz", "more\n"), "text\nmore\n"},
		"padding and text":  {packedBy(t, "gzip", "text\n") + "\x00\x00more\n", "text\nmore\n"},

		"a skippable frame before text":              {skippable + "text\n", skippable + "text\n"},
		"a skippable frame alone":                    {skippable, skippable},
		"a skippable frame that is cut":              {skippable[:10], skippable[:10]},
		"a skippable frame of 2 GiB":                 {skippable[:4] + "\xff\xff\xff\x7f" + "text\n", skippable[:4] + "\xff\xff\xff\x7f" + "text\n"},
		"a skippable frame of 8 KiB":                 {long + packedBy(t, "zstd", "text\n"), long + packedBy(t, "zstd", "text\n")},
		"a skippable frame after a frame":            {packedBy(t, "zstd", "text\n") + long, "text\n"},
		"a skippable frame between frame and text":   {packedBy(t, "zstd", "text\n") + skippable + "more\n", "text\n" + skippable + "more\n"},
		"one of 2 GiB between frame and text":        {packedBy(t, "zstd", "text\n") + skippable[:4] + "\xff\xff\xff\x7fmore\n", "text\n" + skippable[:4] + "\xff\xff\xff\x7fmore\n"},
		"skippable frames between frames, and after": {packedBy(t, "zstd", "text\n") + skippable + packedBy(t, "zstd", "more\n") + skippable + skippable, "text\nmore\n"},
	} {
		if got, err := unpackedIn(t, test.in, 5, nil); got != test.want || err != nil {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}

func TestCompressedLinesComeOutAtOnce(t *testing.T) {
	for _, name := range []string{"gzip", "zstd"} {
		synctest.Test(t, func(t *testing.T) {
			var in, out bytes.Buffer
			z := packers[name](&in)
			w := newRecorder(&out)
			for _, line := range []string{"one\n", "two\n", "three\n"} {
				out.Reset()
				io.WriteString(z, line)
				z.Flush()
				w.Write(in.Bytes())
				in.Reset()
				synctest.Wait() // until the lines are unpacked
				if out.String() != line {
					t.Errorf("%s: %q is out, want %q", name, out.String(), line)
				}
			}
			z.Close()
			w.Write(in.Bytes())
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A compressed file must be printed completely before the next one is written.
func TestCompressedFilesComeOutAtTheirEnd(t *testing.T) {
	for _, name := range []string{"gzip", "zstd", "xz", "bzip2"} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			w := newRecorder(&out)
			for range 3 {
				out.Reset()
				io.WriteString(w, packedBy(t, name, bzip2Text))
				synctest.Wait()
				if out.String() != bzip2Text {
					t.Errorf("%s: %q is out, want %q", name, out.String(), bzip2Text)
				}
			}
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// xzDictionary returns text as xz, with a header that requires a dictionary of the size in bits.
func xzDictionary(t *testing.T, text string, bits byte) string {
	t.Helper()
	b := []byte(packedBy(t, "xz", text))
	i := bytes.Index(b, []byte{0x21, 0x01}) // the filter and the size of its properties
	b[i+2] = bits
	header := b[12 : 12+(int(b[12])+1)*4]
	copy(header[len(header)-4:], crc32Of(header[:len(header)-4]))
	return string(b)
}

func TestWindowsOfCompressedInputsAreBounded(t *testing.T) {
	fuzztest.WithoutRace(t)
	const mib = 1 << 20
	large := "\x28\xb5\x2f\xfd\x00\xa0" + "\x09\x00\x00a" // a window of 1 GiB: exponent 20
	for _, test := range []struct {
		name, in, out, err string
		memory             int64
	}{
		{"xz, a dictionary of 4 GiB", xzDictionary(t, "text\n", 40), "", "unpack the xz file: not enough memory for compressed inputs: unpacking needs 4096 MiB; 64 of 64 are left", 64 * mib},
		{"xz, one of 64 MiB", xzDictionary(t, "text\n", 28), "text\n", "<nil>", 64 * mib},
		{"xz, one of 64 MiB, with less", xzDictionary(t, "text\n", 28), "", "unpack the xz file: not enough memory for compressed inputs: unpacking needs 64 MiB; 63 of 63 are left", 63 * mib},
		{"zstd, a window of 1 GiB", large, "", "unpack the zstd file: not enough memory for compressed inputs: unpacking needs 1024 MiB; 64 of 64 are left", 64 * mib},
		{"zstd, one after a small one", packedBy(t, "zstd", "text\n") + large, "text\n", "unpack the zstd file: not enough memory for compressed inputs: unpacking needs 1024 MiB; 64 of 64 are left", 64 * mib},
		{"bzip2, with less than a block", unbase64(bzip2Data), "", "unpack the bzip2 file: not enough memory for compressed inputs: unpacking needs 4 MiB; 1 of 1 are left", mib},
	} {
		memory := unpack.NewMemory(test.memory)
		for range 2 { // the second run gets the memory that the first has released
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got, err := unpackedIn(t, test.in, 1<<20, memory)
			runtime.ReadMemStats(&after)
			if got != test.out || !strings.HasPrefix(fmt.Sprint(err), test.err) {
				t.Errorf("%s: got %q, %v", test.name, got, err)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > uint64(2*test.memory+8*mib) {
				t.Errorf("%s: %d MiB are allocated", test.name, n/mib)
			}
		}
		if memory.Left() != uint64(test.memory) {
			t.Errorf("%s: %d bytes are not given back", test.name, uint64(test.memory)-memory.Left())
		}
	}
}

func TestDictionariesOfXZTogetherAreBounded(t *testing.T) {
	fuzztest.WithoutRace(t)
	one := xzDictionary(t, "a", 28)
	_, err := unpackedIn(t, strings.Repeat(one, 200), 1<<20, unpack.NewMemory(64<<20))
	if err == nil || !strings.Contains(err.Error(), "need") {
		t.Errorf("got %v", err)
	}
}

func TestLongSkippedFramesAreNotKept(t *testing.T) {
	fuzztest.WithoutRace(t)
	frame := "\x50\x2a\x4d\x18\x00\x00\x10\x00" + strings.Repeat("x", 1<<20)
	for _, before := range []string{"", packedBy(t, "zstd", "text\n")} {
		in := before + strings.Repeat(frame, 16) + "not a frame\n"
		var start, end runtime.MemStats
		runtime.ReadMemStats(&start)
		got, err := unpackedCount(t, []byte(in), 64<<10, nil)
		runtime.ReadMemStats(&end)
		want := len(in)
		if before != "" {
			want += len("text\n") - len(before)
		}
		if int(got) != want || err != nil {
			t.Errorf("got %d bytes of %d, %v", got, want, err)
		}
		if n := end.TotalAlloc - start.TotalAlloc; n > 24<<20 {
			t.Errorf("%d MiB are allocated", n>>20)
		}
	}
}

// Unpacking must end without a panic, within the memory bound. Block sizes must not change the
// result.
func FuzzUnpack(f *testing.F) {
	for _, name := range []string{"gzip", "zstd", "xz", "bzip2"} {
		whole := packedBy(f, name, bzip2Text)
		f.Add([]byte(whole), uint16(7))
		f.Add([]byte(whole+whole), uint16(1000))
		f.Add([]byte(whole[:len(whole)-5]), uint16(1))
		f.Add([]byte(whole+"text\n"), uint16(3))
		f.Add([]byte(whole+whole[:len(whole)-7]+strings.Repeat("text\n", 30)), uint16(3))
	}
	f.Add([]byte("\x50\x2a\x4d\x18\x01\x00\x00\x00x"), uint16(3))
	f.Fuzz(func(t *testing.T, in []byte, block uint16) {
		if len(in) > 16<<10 {
			return
		}
		memory := unpack.NewMemory(16 << 20)
		got, err := unpackedCount(t, in, max(1, int(block)), memory)
		again, againErr := unpackedCount(t, in, 1<<20, memory)
		if got != again || fmt.Sprint(err) != fmt.Sprint(againErr) {
			t.Fatalf("in blocks of %d: %d bytes, %v; in one: %d bytes, %v", block, got, err, again, againErr)
		}
		if memory.Left() != 16<<20 {
			t.Fatalf("%d bytes are not given back", 16<<20-memory.Left())
		}
	})
}

func unpackedCount(t *testing.T, in []byte, block int, memory *unpack.Memory) (count, error) {
	var n count
	asIs := func() io.WriteCloser { return plain{&n} }
	w := New(Markup, Translators{Markup: asIs, Memory: memory})
	for i := 0; i < len(in); i += block {
		if _, err := w.Write(in[i:min(i+block, len(in))]); err != nil {
			t.Fatal(err)
		}
	}
	return n, w.Close()
}

// crc32Of returns the CRC-32 of b in the byte order of xz.
func crc32Of(b []byte) []byte { return binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE(b)) }
