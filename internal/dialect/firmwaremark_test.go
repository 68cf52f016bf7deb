package dialect

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// NextFirmware must find the address in each line with a frame, whatever text precedes the line.
func TestNextFirmwareFindsEachLineWithAFrame(t *testing.T) {
	samples, err := os.ReadFile("testdata/firmware.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, d := range All() {
		names = append(names, d.Name)
	}
	r := NewReader(names)
	r.Firmware = true
	frames := 0
	for line := range bytes.Lines(samples) {
		text := bytes.TrimSuffix(line, []byte("\n"))
		r.Reset()
		means := r.Line(text, 1)
		if means == nil || len(means.Frames) == 0 || bytes.Contains(line, []byte("[<0x")) || bytes.Contains(line, []byte("]: unhandled ")) || bytes.Contains(line, []byte(" runtime 0x")) || means.Frames[0].Dialect == &addresses {
			continue // the line has a mark that is searched for in any log, or describes a frame
		}
		frames++
		for n := range 2 * shortNumber {
			before := strings.Repeat("fade ", n) + strings.Repeat("x", n) + "\n"
			b := append([]byte(before), line...)
			if at := NextFirmware(b, 0); at < len(before) || at >= len(b) {
				t.Fatalf("found at %d of %q", at, b)
			}
			b = append(bytes.Repeat([]byte("f"), n*101), "\n"+string(line)...)
			if at := NextFirmware(b, 0); at <= n*101 || at >= len(b) {
				t.Fatalf("found at %d of %q", at, b)
			}
		}
	}
	if frames < 40 {
		t.Errorf("%d lines with frames", frames)
	}
}

func TestNextFirmwareSkipsOtherText(t *testing.T) {
	for _, line := range []string{
		"I (8123456) sensor: temperature 21.5, heap 123456",
		"2024-05-01T12:00:01.123 INFO id=deadbeefcafe0123 path=/api/12345678/x status=200",
		"commit 0123456789abcdef0123456789abcdef01234567 of 0x12 and size: 0x1000",
		"E (123) wifi: reason 0x8, mac=a0b1c2d3",
		strings.Repeat("0123456789abcdef", 200),
		strings.Repeat("0x", 2000),
	} {
		if at := NextFirmware([]byte(line), 0); at < len(line) {
			t.Errorf("found %q in %q", line[at:], line)
		}
	}
}
