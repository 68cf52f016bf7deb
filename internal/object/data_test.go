package object

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

func zlibOf(t testing.TB, r io.Reader) string {
	t.Helper()
	var out bytes.Buffer
	z, err := zlib.NewWriterLevel(&out, 9)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(z, r); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func zstdOf(t testing.TB, r io.Reader) string {
	t.Helper()
	var out bytes.Buffer
	z, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(z, r); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// zeros returns a reader of n zero bytes.
func zeros(n int64) io.Reader { return io.LimitReader(zeroReader{}, n) }

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// compressed returns a section .debug_x with SHF_COMPRESSED.
func (m image) compressed(method elf.CompressionType, claimed uint64, packed string) imageSection {
	w := m.writer()
	w.u32(uint32(method))
	if !m.is32() {
		w.u32(0)
	}
	w.word(claimed, 1)
	return imageSection{Section{Name: ".debug_x", Type: elf.SHT_PROGBITS, Flags: elf.SHF_COMPRESSED}, w.String() + packed}
}

// zdebug returns a section .zdebug_x.
func (m image) zdebug(claimed uint64, packed string) imageSection {
	return imageSection{Section{Name: ".zdebug_x", Type: elf.SHT_PROGBITS}, "ZLIB" + string(binary.BigEndian.AppendUint64(nil, claimed)) + packed}
}

func TestData(t *testing.T) {
	const text = "the same words, the same words, the same words, and again the same words"
	n := uint64(len(text))
	packed, zpacked := zlibOf(t, strings.NewReader(text)), zstdOf(t, strings.NewReader(text))
	for _, m := range layouts {
		t.Run(m.name(), func(t *testing.T) {
			tests := []struct {
				name    string
				section imageSection
				want    string // result for .debug_x
				err     string // a part of the error
			}{
				{"plain", imageSection{Section{Name: ".debug_x", Type: elf.SHT_PROGBITS}, text}, text, ""},
				{"empty", imageSection{Section{Name: ".debug_x", Type: elf.SHT_PROGBITS}, ""}, "", ""},
				{"without bytes", imageSection{Section{Name: ".debug_x", Type: elf.SHT_NOBITS, Size: 100}, ""}, "", ""},
				{"without bytes, of any size", imageSection{Section{Name: ".debug_x", Type: elf.SHT_NOBITS, Size: math.MaxUint32}, ""}, "", ""},
				{"missing", imageSection{Section{Name: ".debug_y", Type: elf.SHT_PROGBITS}, text}, "", ""},
				{"zlib", m.compressed(elf.COMPRESS_ZLIB, n, packed), text, ""},
				{"zstd", m.compressed(elf.COMPRESS_ZSTD, n, zpacked), text, ""},
				{"zstd of two frames", m.compressed(elf.COMPRESS_ZSTD, 2*n, zpacked+zpacked), text + text, ""},
				{".zdebug", m.zdebug(n, packed), text, ""},
				{"zlib of nothing", m.compressed(elf.COMPRESS_ZLIB, 0, zlibOf(t, strings.NewReader(""))), "", ""},
				{"unknown method", m.compressed(7, n, packed), "", "unknown method 7"},
				{"no header", imageSection{Section{Name: ".debug_x", Type: elf.SHT_PROGBITS, Flags: elf.SHF_COMPRESSED}, "short"}, "", "5 bytes are too few"},
				{".zdebug without its header", imageSection{Section{Name: ".zdebug_x", Type: elf.SHT_PROGBITS}, "ZLIB"}, "", "4 bytes are too few"},
				{".zdebug of something else", imageSection{Section{Name: ".zdebug_x", Type: elf.SHT_PROGBITS}, "BZIP2 data is this"}, "", "does not begin with ZLIB"},
				{"zlib shorter than it claims", m.compressed(elf.COMPRESS_ZLIB, n+1, packed), "", "ends after"},
				{"zlib longer than it claims", m.compressed(elf.COMPRESS_ZLIB, n-1, packed), "", "more bytes than"},
				{"zstd shorter than it claims", m.compressed(elf.COMPRESS_ZSTD, n+1, zpacked), "", "unexpected EOF"},
				{"zstd longer than it claims", m.compressed(elf.COMPRESS_ZSTD, n-1, zpacked), "", "longer than the"},
				{"zlib cut", m.compressed(elf.COMPRESS_ZLIB, n, packed[:20]), "", "unexpected EOF"},
				{"zstd cut", m.compressed(elf.COMPRESS_ZSTD, n, zpacked[:20]), "", "unexpected EOF"},
				{"zlib without its checksum", m.compressed(elf.COMPRESS_ZLIB, n, packed[:len(packed)-4]), "", "unexpected EOF"},
				{"zlib of another checksum", m.compressed(elf.COMPRESS_ZLIB, n, packed[:len(packed)-4]+"abcd"), "", "checksum"},
				{"zlib by no means", m.compressed(elf.COMPRESS_ZLIB, n, zpacked), "", "no zlib header"},
				{"zstd by no means", m.compressed(elf.COMPRESS_ZSTD, n, packed), "", "magic"},
				{"nothing packed", m.compressed(elf.COMPRESS_ZSTD, n, ""), "", "unexpected EOF"},
			}
			for _, tt := range tests {
				m := m
				m.sections = []imageSection{tt.section}
				f, err := openBytes(m.bytes(t))
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				for range 2 { // the second call returns the kept result
					got, err := f.Data(".debug_x")
					if string(got) != tt.want || (err != nil) != (tt.err != "") {
						t.Errorf("%s: Data = %q, %v; want %q, %s", tt.name, got, err, tt.want, tt.err)
					}
					if err != nil && (!strings.Contains(err.Error(), tt.err) || !strings.HasPrefix(err.Error(), "section .debug_x: ")) {
						t.Errorf("%s: Data: %v; want %q", tt.name, err, tt.err)
					}
				}
			}
		})
	}
}

func TestInflatedSectionsAreKeptAndCounted(t *testing.T) {
	m := layouts[0]
	const size = 1 << 20
	m.sections = []imageSection{m.compressed(elf.COMPRESS_ZLIB, size, zlibOf(t, zeros(size)))}
	f, err := openBytes(m.bytes(t))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	before := f.Footprint()
	one, err := f.Data(".debug_x")
	if err != nil {
		t.Fatal(err)
	}
	two, _ := f.Data(".debug_x")
	if &one[0] != &two[0] {
		t.Error("inflated twice")
	}
	if got := f.Footprint() - before; got != size {
		t.Errorf("Footprint grew by %d, want %d", got, size)
	}
}

// TestBombs checks the total memory that a hostile section makes the reader allocate, not only the
// memory that it keeps.
func TestBombs(t *testing.T) {
	fuzztest.WithoutRace(t)
	const mib = 1 << 20
	zlibZeros, zstdZeros := zlibOf(t, zeros(20*mib)), zstdOf(t, zeros(20*mib))
	m := layouts[0]
	m32 := layouts[2]
	tests := []struct {
		name    string
		image   image
		section imageSection
		limit   bool   // a LimitError
		memory  uint64 // bytes
	}{
		{"zlib claims 8 GiB", m, m.compressed(elf.COMPRESS_ZLIB, 8<<30, zlibZeros), true, 1 * mib},
		{"zlib claims 2^64", m, m.compressed(elf.COMPRESS_ZLIB, math.MaxUint64, zlibZeros), true, 1 * mib},
		{"zstd claims 8 GiB", m, m.compressed(elf.COMPRESS_ZSTD, 8<<30, zstdZeros), true, 1 * mib},
		{".zdebug claims 2^64", m, m.zdebug(math.MaxUint64, zlibZeros), true, 1 * mib},
		{"zlib claims more than 1,000:1", m, m.compressed(elf.COMPRESS_ZLIB, 1<<30, zlibZeros[:100]), true, 1 * mib},
		{"zstd inflates to more than 1,000:1", m, m.compressed(elf.COMPRESS_ZSTD, 20*mib, zstdZeros), true, 1 * mib},
		{"ELF-32 claims 4 GiB of 10 bytes", m32, m32.compressed(elf.COMPRESS_ZLIB, math.MaxUint32, zlibZeros[:10]), true, 1 * mib},
		{"zlib claims 16 MiB of 10 bytes", m, m.compressed(elf.COMPRESS_ZLIB, 16*mib, zlibZeros[:10]), false, 2 * mib},
		{"zlib claims little and goes on", m, m.compressed(elf.COMPRESS_ZLIB, 1000, zlibZeros), false, 2 * mib},
		{"zstd claims little and goes on", m, m.compressed(elf.COMPRESS_ZSTD, 1000, zstdZeros), false, 16 * mib},
		// the growing buffers together take twice the bytes that are kept
		{"zlib of 900:1 breaks off", m, m.compressed(elf.COMPRESS_ZLIB, uint64(len(zlibZeros))*900, zlibZeros[:len(zlibZeros)/8]+strings.Repeat("\xff", len(zlibZeros))), false, 40 * mib},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			watch(t)
			tt.image.sections = []imageSection{tt.section}
			f, err := openBytes(tt.image.bytes(t))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			data, err := f.Data(".debug_x")
			runtime.ReadMemStats(&after)
			var limit *LimitError
			if err == nil || tt.limit != errors.As(err, &limit) {
				t.Errorf("Data = %d bytes, %v; want an error, LimitError %v", len(data), err, tt.limit)
			}
			if got := after.TotalAlloc - before.TotalAlloc; got > tt.memory {
				t.Errorf("%d bytes allocated, want at most %d", got, tt.memory)
			}
		})
	}
}

func TestAZstdFrameMayNotAskForAnyWindow(t *testing.T) {
	// the header of a frame that does not state its size but needs a window (RFC 8878, 3.1.1.1),
	// then an empty block
	frame := func(window string) string { return "\x28\xb5\x2f\xfd" + "\x00" + window + "\x01\x00\x00" }
	for _, tt := range []struct {
		name    string
		claimed uint64
		packed  string
	}{
		{"2^41 bytes for a small section", 1000, frame("\xf8")},
		{"16 MiB for a small section", 1000, frame("\x70")},
		{"256 MiB for a large section", 128<<20 + 1, frame("\x90") + strings.Repeat("x", (128<<20)/maxRatio+1)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := layouts[0]
			m.sections = []imageSection{m.compressed(elf.COMPRESS_ZSTD, tt.claimed, tt.packed)}
			f, err := openBytes(m.bytes(t))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			watch(t)
			if data, err := f.Data(".debug_x"); err == nil || !strings.Contains(err.Error(), "window") {
				t.Errorf("Data = %d bytes, %v; want an error about the window", len(data), err)
			}
		})
	}
}

func TestCompressedSectionsAreReadNotMapped(t *testing.T) {
	const text = "never from the mapping"
	m := layouts[0]
	m.sections = []imageSection{
		m.compressed(elf.COMPRESS_ZLIB, uint64(len(text)), zlibOf(t, strings.NewReader(text))),
		{Section{Name: ".plain", Type: elf.SHT_PROGBITS}, "plain"},
	}
	b := m.bytes(t)
	f, err := openBytes(b)
	if err != nil {
		t.Fatal(err)
	}
	f.mapped = make([]byte, len(b)) // a mapping with other bytes
	got, err := f.Data(".debug_x")
	if string(got) != text || err != nil {
		t.Errorf("Data(.debug_x) = %q, %v; want %q, read", got, err, text)
	}
	if got, err := f.Data(".plain"); string(got) != "\x00\x00\x00\x00\x00" || err != nil {
		t.Errorf("Data(.plain) = %q, %v; want the mapping's bytes", got, err)
	}
	f.mapped = nil
}

func TestInflateKeepsWhatDataReturns(t *testing.T) {
	for name, b := range seeds(t) {
		one, err := openBytes(b)
		if err != nil {
			t.Fatal(err)
		}
		defer one.Close()
		all, err := openBytes(b)
		if err != nil {
			t.Fatal(err)
		}
		defer all.Close()
		names := []string{".debug_info", ".debug_info", ".debug_line", ".debug_str", ".debug_abbrev", ".nothing", ".text"}
		cost := all.Footprint()
		for _, section := range names[1:] {
			cost += all.HeapCost(section)
		}
		all.Inflate(names...)
		for _, section := range names {
			want, wantErr := one.Data(section)
			got, err := all.Data(section)
			if !bytes.Equal(got, want) || err != nil || wantErr != nil {
				t.Errorf("%s: Data(%s) after Inflate = %d bytes, %v; want %d, %v", name, section, len(got), err, len(want), wantErr)
			}
			if n := all.HeapCost(section); n != 0 {
				t.Errorf("%s: HeapCost(%s) = %d when it is held", name, section, n)
			}
		}
		if got := all.Footprint(); got != cost {
			t.Errorf("%s: Footprint() = %d, want %d: what it was and the costs", name, got, cost)
		}
	}
}

func TestInflateLeavesErrorsToData(t *testing.T) {
	m := layouts[0]
	m.sections = []imageSection{m.compressed(elf.COMPRESS_ZLIB, 8<<30, "nothing")}
	f, err := openBytes(m.bytes(t))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.Inflate(".debug_x")
	var limit *LimitError
	if data, err := f.Data(".debug_x"); !errors.As(err, &limit) {
		t.Errorf("Data = %d bytes, %v; want a LimitError", len(data), err)
	}
}
