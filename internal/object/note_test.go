package object

import (
	"bytes"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

func TestBuildIDIsThatOfReadelf(t *testing.T) {
	if _, err := exec.LookPath("readelf"); err != nil {
		t.Skip("no readelf")
	}
	line := regexp.MustCompile(`Build ID: ([0-9a-f]+)`)
	files := machineFiles(t)
	files = files[:min(len(files), 30)]
	for _, path := range files {
		out, err := exec.Command("readelf", "--notes", "--wide", path).CombinedOutput()
		if err != nil {
			t.Fatalf("readelf %s: %v\n%s", path, err, out)
		}
		want := ""
		if m := line.FindSubmatch(out); m != nil {
			want = string(m[1])
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := BuildID(bytes.NewReader(b), int64(len(b)))
		if hex.EncodeToString(got) != want || (err != nil) != (want == "") {
			t.Errorf("%s: BuildID = %x, %v; want %s", path, got, err, want)
		}
	}
}

// noteOf returns a little-endian note, with both parts padded to align.
func noteOf(owner string, kind uint32, desc string, align int) string {
	pad := func(s string) string { return s + strings.Repeat("\x00", (align-len(s)%align)%align) }
	num := func(n int) string { return string([]byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)}) }
	return pad(pad(num(len(owner))+num(len(desc))+num(int(kind))+owner) + desc)
}

func TestFindBuildID(t *testing.T) {
	const gnu = "GNU\x00"
	tests := []struct {
		name  string
		notes string
		align uint64
		want  string
	}{
		{"alone", noteOf(gnu, 3, "id of 4 ", 4), 4, "id of 4 "},
		{"behind another note", noteOf(gnu, 1, "abi", 4) + noteOf(gnu, 3, "id", 4), 4, "id"},
		{"behind a note of 8-byte alignment", noteOf(gnu, 5, "12345", 8) + noteOf(gnu, 3, "id", 8), 8, "id"},
		{"behind a note of another owner", noteOf("Go\x00\x00", 4, "x/y", 4) + noteOf("FreeBSD\x00", 3, "no", 4) + noteOf(gnu, 3, "id", 4), 4, "id"},
		{"behind an empty note", noteOf("", 0, "", 4) + noteOf(gnu, 3, "id", 4), 4, "id"},
		{"the first of two", noteOf(gnu, 3, "one", 4) + noteOf(gnu, 3, "two", 4), 4, "one"},
		{"64 bytes", noteOf(gnu, 3, strings.Repeat("x", 64), 4), 4, strings.Repeat("x", 64)},
		{"65 bytes are none", noteOf(gnu, 3, strings.Repeat("x", 65), 4), 4, ""},
		{"0 bytes are none", noteOf(gnu, 3, "", 4), 4, ""},
		{"owner without its NUL", noteOf("GNU", 3, "id", 4), 4, ""},
		{"cut inside the ID", noteOf(gnu, 3, "12345678", 4)[:20], 4, ""},
		{"cut inside the head", noteOf(gnu, 3, "id", 4)[:11], 4, ""},
		{"no padding at the end", noteOf(gnu, 3, "12345", 4)[:21], 4, "12345"},
		{"name of 4 GiB", "\xff\xff\xff\xff\x02\x00\x00\x00\x03\x00\x00\x00GNU\x00id", 4, ""},
		{"description of 4 GiB", "\x04\x00\x00\x00\xff\xff\xff\xff\x03\x00\x00\x00GNU\x00id", 4, ""},
		{"both of 4 GiB", strings.Repeat("\xff", 64), 8, ""},
		{"zeros", strings.Repeat("\x00", 4096), 4, ""},
		{"nothing", "", 4, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := findBuildID(layout{}, []byte(tt.notes), tt.align)
			if string(got) != tt.want {
				t.Errorf("findBuildID = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestBuildIDOfWhatIsNoELFFileIsAFormatError(t *testing.T) {
	for _, content := range []string{"", "\x7f", "\x7fELF", "#!/bin/sh\n", strings.Repeat("\x00", 200)} {
		id, err := BuildID(strings.NewReader(content), int64(len(content)))
		var format *FormatError
		if !errors.As(err, &format) {
			t.Errorf("BuildID(%q) = %x, %v; want a FormatError", content, id, err)
		}
	}
}

// findBuildID searches notes as BuildID does.
func findBuildID(l layout, notes []byte, align uint64) []byte {
	s := noteSearch{header: &header{layout: l}, owner: "GNU\x00", kind: ntGNUBuildID, limit: maxID}
	return s.find(notes, align)
}

func FuzzNote(f *testing.F) {
	f.Add([]byte(noteOf("GNU\x00", 3, "12345678901234567890", 4)), false, true)
	f.Add([]byte(noteOf("GNU\x00", 5, "12345", 8)+noteOf("GNU\x00", 3, "id", 8)), false, true)
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\x03\x00\x00\x00GNU\x00"), true, false)
	f.Fuzz(func(t *testing.T, notes []byte, big, eight bool) {
		watch(t)
		align := uint64(4)
		if eight {
			align = 8
		}
		id := findBuildID(layout{big: big}, notes, align)
		if id == nil {
			return
		}
		if len(id) == 0 || len(id) > maxID || !bytes.Contains(notes, append([]byte("GNU\x00"), id...)) {
			t.Errorf("findBuildID = %x: not a note in %x", id, notes)
		}
	})
}
