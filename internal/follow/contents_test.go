package follow

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/testenv"
)

func TestContentSizesOfRealFiles(t *testing.T) {
	testenv.Need(t, "gzip", "zstd", "xz", "bzip2")
	dir := t.TempDir()
	for _, n := range []int{1, 200, 256, 300, 65791, 65792, 1 << 20} {
		path := filepath.Join(dir, "app.log")
		if err := os.WriteFile(path, bytes.Repeat([]byte("0123456789abcdef"), n/16+1)[:n], 0o666); err != nil {
			t.Fatal(err)
		}
		for command, known := range map[string]bool{
			"gzip -k app.log": true, "gzip -c <app.log": true, "zstd -q app.log -o app.log.gz": true, "zstd -q -c <app.log": n < 0,
			"xz -k -c app.log": true, "xz -c --block-size=70000 <app.log": true, "bzip2 -c app.log": false,
		} {
			if n < 1<<20 && command == "zstd -q -c <app.log" { // the program knows the size of a small input
				continue
			}
			packed := path + ".gz"
			os.Remove(packed)
			if strings.Contains(command, "-c") {
				command += " >app.log.gz"
			}
			cmd := exec.Command("sh", "-c", command)
			cmd.Dir = dir
			if said, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", command, err, said)
			}
			h, _, err := newDisk(nil).openHandle(packed)
			if err != nil {
				t.Fatal(err)
			}
			if size, ok := h.contentSize(); ok != known && !strings.HasPrefix(command, "zstd -q -c") || ok && size != int64(n) {
				t.Errorf("%s: %d, %v; want %d, %v", command, size, ok, n, known)
			}
			h.Close()
		}
	}
}

// Reads at any offset must return the decoder's output. The size that the compressed file records
// must not be trusted.
func FuzzContents(f *testing.F) {
	pack := func(contents string) []byte {
		var t testing.T
		return gzipped(&t, contents)
	}
	long := pack(strings.Repeat("a line\n", 20000) + strings.Repeat("x", 100000))
	f.Add(pack("one\ntwo\nthree"), uint32(5))
	f.Add(long, uint32(70000))
	f.Add(long[:len(long)/2], uint32(1))
	wrong := bytes.Clone(long)
	wrong[len(wrong)-5] ^= 1 // the checksum
	f.Add(wrong, uint32(3))
	f.Add(append(pack("one\n"), pack("two\n")...), uint32(6))
	f.Add([]byte("\xfd7zXZ\x00\x00\x04\x00\x01\x02\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00YZ"), uint32(0))
	f.Add([]byte("\x28\xb5\x2f\xfd\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), uint32(0))
	f.Fuzz(func(t *testing.T, data []byte, place uint32) {
		defer fuzztest.Watch(t, []any{data, place})()
		path := filepath.Join(t.TempDir(), "app.log.1.gz")
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
		d := newDisk(nil)
		d.unpack = unpackGzip
		h, _, err := d.openHandle(path)
		if err != nil {
			t.Fatal(err)
		}
		h.contentSize()
		h.Close()
		g, err := d.openPacked(path)
		if err != nil {
			if g != nil {
				g.Close()
			}
			return
		}
		defer g.Close()
		var want []byte
		z, _, err := unpackGzip(bytes.NewReader(data))
		if err == nil {
			want, err = io.ReadAll(io.LimitReader(z, 16<<20))
		}
		if len(want) == 16<<20 {
			return
		}
		var got []byte
		emit := func(p []byte, _ bool) error { got = append(got, p...); return nil }
		buf := make([]byte, 64<<10)
		more, failed := true, error(nil)
		for more && failed == nil {
			more, failed = g.lines(context.Background(), buf, emit)
		}
		if (err != nil) != isDamage(failed) || failed != nil && !isDamage(failed) {
			t.Fatalf("got %v, want %v", failed, err)
		}
		if e := g.endLine(context.Background(), buf, false, emit); e != nil && !errors.Is(e, io.EOF) {
			t.Fatal(e)
		}
		if added := len(got) - len(want); !bytes.HasPrefix(got, want) && g.newline() != nil || added > 2 {
			i := 0
			for i < min(len(got), len(want)) && got[i] == want[i] {
				i++
			}
			t.Fatalf("got %d bytes, want %d; they differ from byte %d on: %.20q, want %.20q; %v", len(got), len(want), i, got[i:], want[i:], err)
		}
		at := int64(place) % int64(len(want)+1)
		b := make([]byte, 100)
		n, _ := g.ReadAt(b, at)
		if rest := want[at:]; !bytes.Equal(b[:n], rest[:min(len(rest), len(b))]) {
			t.Fatalf("at %d got %q, want %q", at, b[:n], rest[:min(len(rest), len(b))])
		}
	})
}
