package buildid

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

// A packed is a member of an archive made by a test.
type packed struct {
	name    string
	content []byte
	method  uint16
}

func zipOf(t testing.TB, members ...packed) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, m := range members {
		body, err := w.CreateHeader(&zip.FileHeader{Name: m.name, Method: m.method})
		if err == nil {
			_, err = body.Write(m.content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// symbols returns an archive like those of the Android Gradle plugin.
func symbols(t testing.TB) []byte {
	return zipOf(t,
		packed{"arm64-v8a/", nil, zip.Store},
		packed{"arm64-v8a/libx.so.dbg", program{id: "aa01", sections: []string{".debug_info"}}.bytes(t), zip.Deflate},
		packed{"arm64-v8a/liby.so.sym", program{id: "aa02"}.bytes(t), zip.Store},
		packed{"x86_64/libx.so.dbg", program{id: "aa03", sections: []string{".debug_info"}}.bytes(t), zip.Deflate},
		packed{"x86_64/none.so", program{}.bytes(t), zip.Deflate},
		packed{"nested.zip", zipOf(t, packed{"libz.so", program{id: "aa04"}.bytes(t), zip.Store}), zip.Store},
		packed{"README", []byte("text"), zip.Deflate},
		packed{"empty", nil, zip.Store},
	)
}

func TestMembersOfAZipFileAreFound(t *testing.T) {
	tests := []struct {
		id, want string // empty if not found
		mapped   bool
		content  []byte
	}{
		{"aa01", "arm64-v8a/libx.so.dbg", true, program{id: "aa01", sections: []string{".debug_info"}}.bytes(t)},
		{"aa02", "arm64-v8a/liby.so.sym", false, program{id: "aa02"}.bytes(t)},
		{"aa03", "x86_64/libx.so.dbg", true, program{id: "aa03", sections: []string{".debug_info"}}.bytes(t)},
		{"aa04", "", false, nil},
	}
	for _, how := range []string{"named", "in a folder"} {
		for _, cached := range []bool{false, true} {
			t.Run(fmt.Sprint(how, ", cached ", cached), func(t *testing.T) {
				checkNoFileStaysOpen(t)
				dir, cache := t.TempDir(), ""
				if cached {
					cache = t.TempDir()
				}
				path := filepath.Join(dir, "sub", "native-debug-symbols.zip")
				put(t, path, symbols(t))
				settle(t, dir)
				o := SymbolPathOptions{[]string{dir}, cache}
				if how == "named" {
					o.Paths[0] = path
				}
				for start := range 2 {
					p := OpenSymbolPath(o)
					for range 2 {
						for _, tt := range tests {
							checkFound(t, p, path, tt.id, tt.want, tt.mapped, tt.content)
						}
					}
					if err := p.Close(); err != nil {
						t.Error(err)
					}
					want := int64(1)
					if start == 1 && cached {
						want = 0
					}
					if got := p.opens.Load(); got != want {
						t.Errorf("start %d: %d files were opened to be indexed, want %d", start, got, want)
					}
				}
				if left, err := filepath.Glob(filepath.Join(cache, memoryFolder, tempPrefix+"*")); err != nil || len(left) > 0 {
					t.Errorf("left in the cache: %v", left)
				}
			})
		}
	}
}

func checkFound(t *testing.T, p *SymbolPath, path, id, want string, mapped bool, content []byte) {
	t.Helper()
	f, told, err := find(t, p, Query{ID: mustParse(t, id)})
	if want == "" {
		if !errors.Is(err, fs.ErrNotExist) || len(told) != 1 || !strings.Contains(told[0].Reason, "3 ELF files") {
			t.Errorf("%s: %v, told %v", id, err, told)
		}
		return
	}
	if err != nil {
		t.Errorf("%s: %v, told %v", id, err, told)
		return
	}
	defer f.Close()
	if got := f.Path(); got != path+"!"+want || (f.OS() != nil) != mapped || f.unverified {
		t.Errorf("%s: found %s, mapped %v; want %s!%s, %v", id, got, f.OS() != nil, path, want, mapped)
	}
	got := make([]byte, f.Size())
	if _, err := f.ReadAt(got, 0); err != nil && !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	if !bytes.Equal(got, content) {
		t.Errorf("%s: other content", id)
	}
}

// lies returns an archive with one deflated member. If change is not nil, it may set wrong sizes or
// checksums in the member's header.
func lies(t testing.TB, content []byte, change func(h *zip.FileHeader)) []byte {
	t.Helper()
	var body bytes.Buffer
	w, _ := flate.NewWriter(&body, flate.BestSpeed)
	w.Write(content)
	w.Close()
	h := &zip.FileHeader{
		Name: "libx.so", Method: zip.Deflate, CRC32: crc32.ChecksumIEEE(content),
		CompressedSize64: uint64(body.Len()), UncompressedSize64: uint64(len(content)),
	}
	if change != nil {
		change(h)
	}
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	raw, err := z.CreateRaw(h)
	if err == nil {
		_, err = raw.Write(body.Bytes())
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestHostileZipFilesAreRefused(t *testing.T) {
	good := program{id: wanted}.bytes(t)
	big := bytes.Clone(good)
	for i := 0; len(big) <= zipRatioFrom; i++ {
		big = fmt.Appendf(big, "%d%0200d", i, 0)
	}
	many := make([]packed, maxZipMembers+1)
	for i := range many {
		many[i] = packed{name: "x"}
	}
	long := make([]packed, 200)
	for i := range long {
		long[i] = packed{name: strings.Repeat("x", 60000)}
	}
	tests := []struct {
		name    string
		content []byte
		said    string // empty if found
	}{
		{"good", lies(t, good, nil), ""},
		{"large and repetitive, but true", lies(t, big, nil), ""},
		{"another sum", lies(t, good, func(h *zip.FileHeader) { h.CRC32++ }), "checksum"},
		{"no sum", lies(t, good, func(h *zip.FileHeader) { h.CRC32 = 0 }), "checksum"},
		{"shorter than it says", lies(t, good, func(h *zip.FileHeader) { h.UncompressedSize64 += 100 }), "not all of this zip file can be used"},
		{"longer than it says", lies(t, good, func(h *zip.FileHeader) { h.UncompressedSize64 -= 100 }), "not all of this zip file can be used"},
		{"a bomb", lies(t, good, func(h *zip.FileHeader) { h.UncompressedSize64 = maxZipMember }), "compressed bytes can inflate to"},
		{"larger than any file", lies(t, good, func(h *zip.FileHeader) { h.UncompressedSize64 = 1 << 60 }), "too large"},
		{"encrypted", lies(t, good, func(h *zip.FileHeader) { h.Flags |= 1 }), "encrypted"},
		{"packed in another way", lies(t, good, func(h *zip.FileHeader) { h.Method = 14 }), "unknown compression method"},
		{"stored with two sizes", lies(t, good, func(h *zip.FileHeader) { h.Method = zip.Store }), "sizes differ"},
		{"half", symbols(t)[:600], "not all of this zip file can be used"},
		{"too many members", zipOf(t, many...), "not all of this zip file can be used: more than 65536 members"},
		{"too large a directory", zipOf(t, long...), "not all of this zip file can be used: its directory has more than 8388608 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			defer fuzztest.Watch(t, tt.name)()
			checkNoFileStaysOpen(t)
			dir := t.TempDir()
			put(t, filepath.Join(dir, "x.zip"), tt.content)
			p := newSymbolPath(dir)
			defer p.Close()
			f, told, err := find(t, p, Query{ID: mustParse(t, wanted)})
			if tt.said == "" {
				if err != nil {
					t.Fatalf("%v, told %v", err, told)
				}
				f.Close()
				return
			}
			if !errors.Is(err, fs.ErrNotExist) || len(told) == 0 || !strings.Contains(told[0].Reason, tt.said) {
				t.Errorf("%v, told %v; want %q", err, told, tt.said)
			}
		})
	}
}

func TestAMemberIsInflatedOnceForAll(t *testing.T) {
	checkNoFileStaysOpen(t)
	dir := t.TempDir()
	content := append(program{id: wanted}.bytes(t), bytes.Repeat([]byte("symbols "), 1<<17)...)
	put(t, filepath.Join(dir, "x.zip"), zipOf(t, packed{"libx.so", content, zip.Deflate}))
	p := newSymbolPath(dir)
	var mu sync.Mutex
	inflated := make(map[*os.File]bool)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 5 {
				f, err := p.Find(t.Context(), Query{ID: mustParse(t, wanted)}, nil)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				inflated[f.OS()] = true
				mu.Unlock()
				got := make([]byte, len(content))
				if _, err := f.ReadAt(got, 0); err != nil || !bytes.Equal(got, content) {
					t.Errorf("other content: %v", err)
				}
				if err := f.Close(); err != nil {
					t.Error(err)
				}
				if err := f.Close(); !errors.Is(err, os.ErrClosed) {
					t.Errorf("closed again: %v", err)
				}
			}
		})
	}
	all.Wait()
	if len(inflated) != 1 {
		t.Errorf("inflated %d times", len(inflated))
	}
	f, _, err := find(t, p, Query{ID: mustParse(t, wanted)})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if _, err := f.ReadAt(make([]byte, 10), 0); err != nil {
		t.Errorf("a file in use was closed: %v", err)
	}
}

func TestUnpackedMembersAreClosedWhenTheyAreMany(t *testing.T) {
	checkNoFileStaysOpen(t)
	dir := t.TempDir()
	var s unpackedSet
	open := func(i int) *unpackedItem {
		item, err := s.get(t.Context(), unpackedKey{index: i}, func() (*tempFile, error) { return newTempFile(dir) })
		if err != nil {
			t.Fatal(err)
		}
		return item
	}
	for i := range maxUnpacked + 5 {
		s.release(open(i))
	}
	if len(s.items) != maxUnpacked || s.items[unpackedKey{index: 4}] != nil || s.items[unpackedKey{index: 5}] == nil {
		t.Errorf("%d items are kept", len(s.items))
	}
	large := open(100)
	large.file.size = maxUnpackedBytes + 1
	s.release(large)
	if len(s.items) != 0 {
		t.Errorf("%d items are kept beyond the bytes that may be", len(s.items))
	}
	want := errors.New("no")
	if _, err := s.get(t.Context(), unpackedKey{}, func() (*tempFile, error) { return nil, want }); !errors.Is(err, want) || len(s.items) != 0 {
		t.Errorf("got %v, %d items", err, len(s.items))
	}
	s.close()
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestWaitingForAMemberEndsWithTheContext(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var s unpackedSet
		began, end := make(chan struct{}), make(chan struct{})
		var maker sync.WaitGroup
		maker.Go(func() {
			_, err := s.get(t.Context(), unpackedKey{}, func() (*tempFile, error) {
				close(began)
				<-end
				// as if the context of the inflating goroutine had ended
				return nil, context.Canceled
			})
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
		<-began
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.get(ctx, unpackedKey{}, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		var other sync.WaitGroup
		other.Go(func() {
			item, err := s.get(t.Context(), unpackedKey{}, func() (*tempFile, error) { return newTempFile(dir) })
			if err != nil {
				t.Errorf("the other's context ended, not this one's: %v", err)
				return
			}
			s.release(item)
		})
		synctest.Wait()
		close(end)
		maker.Wait()
		other.Wait()
		s.close()
	})
}

func TestAnArchiveThatChangedIsIndexedAgain(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.zip")
	put(t, path, zipOf(t, packed{"libx.so", program{id: wanted}.bytes(t), zip.Deflate}))
	settle(t, dir)
	synctest.Test(t, func(t *testing.T) {
		later()
		p := newSymbolPath(dir)
		defer p.Close()
		if !has(t, p, mustParse(t, wanted)) {
			t.Fatal("not found")
		}
		put(t, path, zipOf(t, packed{"a", nil, zip.Store}, packed{"libx.so", program{id: another}.bytes(t), zip.Store}))
		_, told, err := find(t, p, Query{ID: mustParse(t, wanted)})
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got %v", err)
		}
		if diff := cmp.Diff(below(dir, told), []string{"x.zip!libx.so: changed since it was indexed"}); diff != "" {
			t.Errorf("told (-got +want):\n%s", diff)
		}
		time.Sleep(recheckMin)
		if has(t, p, mustParse(t, wanted)) || !has(t, p, mustParse(t, another)) {
			t.Error("the index is as before")
		}
	})
}

func TestWhatIsWrongWithAnArchiveIsSaidEachTime(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "x.zip"), symbols(t)[:600])
	put(t, filepath.Join(dir, "y"), program{id: "0102"}.bytes(t))
	settle(t, dir)
	synctest.Test(t, func(t *testing.T) {
		later()
		p := newSymbolPath(dir)
		var index *pathIndex
		for round := range 4 {
			_, told, err := find(t, p, Query{ID: mustParse(t, wanted)})
			if !errors.Is(err, fs.ErrNotExist) || len(told) != 2 || !strings.Contains(told[0].Reason, "zip") {
				t.Errorf("round %d: %v, told %v", round, err, told)
			}
			if round > 0 && p.index.Load() != index {
				t.Errorf("round %d: indexed again though nothing has changed", round)
			}
			index = p.index.Load()
			p.deep.took = time.Hour // only folders are examined from now on
			time.Sleep(recheckMin)
		}
	})
}

func FuzzZip(f *testing.F) {
	good := program{id: wanted}.bytes(f)
	f.Add(symbols(f))
	f.Add(lies(f, good, nil))
	f.Add(lies(f, good, func(h *zip.FileHeader) { h.CRC32++ }))
	f.Add(lies(f, make([]byte, 1<<20), func(h *zip.FileHeader) { h.UncompressedSize64 = 1 << 31 }))
	truncated := symbols(f)
	binary.LittleEndian.PutUint16(truncated[len(truncated)-12:], 0xffff)
	f.Add(truncated)
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		defer fuzztest.Watch(t, data)()
		r := bytes.NewReader(data)
		members, err := readMembers(t.Context(), r, r.Size())
		if err != nil {
			return
		}
		z, err := openZip(r, r.Size())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range members {
			if m.id.IsZero() || z.File[m.index].Name != m.name {
				t.Errorf("member %+v", m)
			}
			if z.File[m.index].UncompressedSize64 > 1<<24 {
				continue // errors of the disk are not tested
			}
			file, err := inflate(t.Context(), z.File[m.index], dir)
			if err != nil {
				continue
			}
			if info, err := file.Stat(); err != nil || info.Size() != file.size {
				t.Errorf("%v, %v; want %d bytes", info, err, file.size)
			}
			file.Close()
		}
	})
}

func TestNoNameOfATempFileStays(t *testing.T) {
	dir := t.TempDir()
	f, err := newTempFile(dir)
	if err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 && runtime.GOOS != "windows" {
		t.Errorf("while it is open: %v", left)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("closed: %v", left)
	}
}

// An archive that claims too many members must be rejected. A sparse file takes little space, but
// is large enough for any claim.
func TestZipClaimsOfMembers(t *testing.T) {
	const size, members = 8 << 40, 200 << 30
	end64 := binary.LittleEndian.AppendUint64([]byte("PK\x06\x06"), 44)
	end64 = append(end64, 45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	for _, n := range []uint64{members, members, 100, 104} {
		end64 = binary.LittleEndian.AppendUint64(end64, n)
	}
	locator := binary.LittleEndian.AppendUint64([]byte("PK\x06\x07\x00\x00\x00\x00"), size-22-20-56)
	locator = append(locator, 1, 0, 0, 0)
	end := append([]byte("PK\x05\x06\x00\x00\x00\x00"), bytes.Repeat([]byte{0xff}, 12)...)
	tail := slices.Concat(end64, locator, end, []byte{0, 0})
	path := filepath.Join(t.TempDir(), "x.zip")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		t.Skip("no sparse files here: ", err)
	}
	if _, err := f.WriteAt(tail, size-int64(len(tail))); err != nil {
		t.Fatal(err)
	}
	if _, err := openZip(f, size); !errors.Is(err, errBadZip) {
		t.Errorf("got %v, want %v", err, errBadZip)
	}
}
