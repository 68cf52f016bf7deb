package object

import (
	"debug/elf"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// fileWith opens a file of layout m with one section.
func fileWith(t testing.TB, m image, name, data string) *File {
	t.Helper()
	m.sections = []imageSection{{Section{Name: name, Type: elf.SHT_PROGBITS}, data}}
	f, err := openBytes(m.bytes(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestDebugLink(t *testing.T) {
	tests := []struct {
		name, data string
		want       string
	}{
		{"padded by 3", "abcd\x00\x00\x00\x00\x01\x02\x03\x04", "abcd"},
		{"padded by none", "abc\x00\x01\x02\x03\x04", "abc"},
		{"more behind it", "abc\x00\x01\x02\x03\x04tail", "abc"},
		{"a path", "/x/../y.debug\x00\x00\x00\x01\x02\x03\x04", "/x/../y.debug"},
		{"an empty name", "\x00\x00\x00\x00\x01\x02\x03\x04", ""},
		{"the sum cut", "abc\x00\x01\x02\x03", ""},
		{"the padding cut", "abcd\x00\x00", ""},
		{"no end", "abcdefgh", ""},
		{"nothing", "", ""},
		{"too long", strings.Repeat("x", maxLink) + "\x00\x00\x00\x00\x01\x02\x03\x04", ""},
	}
	for _, m := range layouts {
		want := uint32(0x04030201)
		if m.big {
			want = 0x01020304
		}
		for _, tt := range tests {
			name, crc, ok := fileWith(t, m, ".gnu_debuglink", tt.data).DebugLink()
			if name != tt.want || ok != (tt.want != "") || ok && crc != want {
				t.Errorf("%s: %s: DebugLink() = %q, %#x, %v; want %q, %#x", m.name(), tt.name, name, crc, ok, tt.want, want)
			}
		}
	}
}

func TestAltLink(t *testing.T) {
	tests := []struct {
		name, data string
		want, id   string
	}{
		{"20 bytes", "../dwz\x0012345678901234567890", "../dwz", "12345678901234567890"},
		{"1 byte", "a\x00b", "a", "b"},
		{"64 bytes", "a\x00" + strings.Repeat("b", 64), "a", strings.Repeat("b", 64)},
		{"65 bytes", "a\x00" + strings.Repeat("b", 65), "", ""},
		{"no ID", "a\x00", "", ""},
		{"an empty name", "\x00abc", "", ""},
		{"no end", "abc", "", ""},
		{"nothing", "", "", ""},
	}
	for _, tt := range tests {
		name, id, ok := fileWith(t, layouts[0], ".gnu_debugaltlink", tt.data).AltLink()
		if name != tt.want || string(id) != tt.id || ok != (tt.want != "") {
			t.Errorf("%s: AltLink() = %q, %q, %v; want %q, %q", tt.name, name, id, ok, tt.want, tt.id)
		}
	}
}

func TestPackageNote(t *testing.T) {
	fdo := func(desc string) string { return noteOf("FDO\x00", ntFDOPackaging, desc, 4) }
	fedora := PackageNote{Type: "rpm", Name: "hello", Version: "0-1.fc35", Architecture: "x86_64", OSCPE: "cpe:/o:fedoraproject:fedora:33"}
	tests := []struct {
		name, notes string
		want        PackageNote
	}{
		{"of Fedora", fdo(`{"type":"rpm","name":"hello","version":"0-1.fc35","architecture":"x86_64","osCpe":"cpe:/o:fedoraproject:fedora:33"}` + "\x00\x00"), fedora},
		{"behind a build ID", noteOf("GNU\x00", 3, "12345678", 4) + fdo(`{"type":"deb","debugInfoUrl":"https://x","other":"y"}`), PackageNote{Type: "deb", DebugInfoURL: "https://x"}},
		{"of another owner", noteOf("GNU\x00", ntFDOPackaging, `{"type":"deb"}`, 4), PackageNote{}},
		{"of another type", noteOf("FDO\x00", 0x407c0c0a, `{"type":"deb"}`, 4), PackageNote{}}, // dlopen metadata
		{"an array", fdo(`[]`), PackageNote{}},
		{"a number for a string", fdo(`{"type":1}`), PackageNote{}},
		{"cut", fdo(`{"type":"deb"`), PackageNote{}},
		{"deep", fdo(strings.Repeat("[", 16000)), PackageNote{}},
		{"too long", fdo(`{"type":"` + strings.Repeat("x", maxPackageNote) + `"}`), PackageNote{}},
		{"nothing said", fdo(`{}`), PackageNote{}},
	}
	for _, tt := range tests {
		m := layouts[0]
		m.sections = []imageSection{{Section{Name: ".note.package", Type: elf.SHT_NOTE}, tt.notes}}
		bySection := m.bytes(t)
		// the same notes in a segment, without a note section
		m.sections[0].Type = elf.SHT_PROGBITS
		m.segments = []Segment{{Type: elf.PT_NOTE, Offset: ehdrSize64 + phdrSize64, FileSize: uint64(len(tt.notes)), Align: 4}}
		for how, b := range map[string][]byte{"section": bySection, "segment": m.bytes(t)} {
			f, err := openBytes(b)
			if err != nil {
				t.Fatal(err)
			}
			got, ok := f.PackageNote()
			if got != tt.want || ok != (tt.want != PackageNote{}) {
				t.Errorf("%s, by %s: PackageNote() = %+v, %v; want %+v", tt.name, how, got, ok, tt.want)
			}
			f.Close()
		}
	}
}

// Links and notes written by objcopy and ld are read.
func TestLinksAndNotesOfRealTools(t *testing.T) {
	for _, tool := range []string{"gcc", "objcopy", "readelf"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("no " + tool)
		}
	}
	dir := t.TempDir()
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", args, err, out)
		}
		return string(out)
	}
	const altID = "12345678901234567890"
	note := noteOf("FDO\x00", ntFDOPackaging, `{"type":"deb","name":"small","os":"debian"}`, 4)
	write(t, filepath.Join(dir, "note"), note)
	write(t, filepath.Join(dir, "alt"), "small.dwz\x00"+altID)
	source, err := filepath.Abs("testdata/small.c")
	if err != nil {
		t.Fatal(err)
	}
	run("gcc", "-g", "-shared", "-fPIC", "-nostdlib", "-o", "whole", source)
	run("objcopy", "--only-keep-debug", "whole", "small.debug")
	run("objcopy", "--strip-debug", "--add-gnu-debuglink=small.debug", "--add-section=.gnu_debugaltlink=alt",
		"--add-section=.note.package=note", "--set-section-flags=.note.package=alloc,readonly", "whole", "stripped")
	debug, err := os.ReadFile(filepath.Join(dir, "small.debug"))
	if err != nil {
		t.Fatal(err)
	}
	f := open(t, filepath.Join(dir, "stripped"))
	if name, crc, ok := f.DebugLink(); name != "small.debug" || crc != crc32.ChecksumIEEE(debug) || !ok {
		t.Errorf("DebugLink() = %q, %#x, %v; want small.debug, %#x", name, crc, ok, crc32.ChecksumIEEE(debug))
	}
	out := run("readelf", "--debug-dump=links", "stripped")
	m := regexp.MustCompile(`Separate debug info file: (\S+)\s+CRC value: (0x[0-9a-f]+)`).FindStringSubmatch(out)
	if m == nil || m[1] != "small.debug" {
		t.Errorf("readelf sees no link:\n%s", out)
	}
	name, id, ok := f.AltLink()
	if name != "small.dwz" || string(id) != altID || !ok {
		t.Errorf("AltLink() = %q, %q, %v", name, id, ok)
	}
	if p, ok := f.PackageNote(); p != (PackageNote{Type: "deb", Name: "small", OS: "debian"}) || !ok {
		t.Errorf("PackageNote() = %+v, %v", p, ok)
	}
}

func write(t testing.TB, path, data string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
}

func FuzzLinks(f *testing.F) {
	f.Add([]byte("abcd\x00\x00\x00\x00\x01\x02\x03\x04"), false)
	f.Add([]byte("../dwz\x0012345678901234567890"), true)
	f.Add([]byte(noteOf("FDO\x00", ntFDOPackaging, `{"type":"deb"}`, 4)), false)
	f.Fuzz(func(t *testing.T, data []byte, big bool) {
		watch(t)
		m := image{big: big}
		for name, kind := range map[string]elf.SectionType{".gnu_debuglink": elf.SHT_PROGBITS, ".gnu_debugaltlink": elf.SHT_PROGBITS, ".note.package": elf.SHT_NOTE} {
			m.sections = append(m.sections, imageSection{Section{Name: name, Type: kind}, string(data)})
		}
		o, err := openBytes(m.bytes(t))
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
		if name, _, ok := o.DebugLink(); ok != (name != "") || strings.ContainsRune(name, 0) {
			t.Errorf("DebugLink() = %q, %v", name, ok)
		}
		if name, id, ok := o.AltLink(); ok != (name != "") || strings.ContainsRune(name, 0) || ok && (len(id) == 0 || len(id) > maxID) {
			t.Errorf("AltLink() = %q, %x, %v", name, id, ok)
		}
		o.PackageNote()
	})
}
