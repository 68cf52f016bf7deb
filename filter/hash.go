package filter

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"time"

	"github.com/symfilter/symfilter/internal/judge"
)

// maxHashed bounds the bytes of a file that is compared with a hash in the log. Firmware files have
// tens of megabytes with debug information.
const maxHashed = 512 << 20

// A givenFile describes an operator's file. sum is its SHA-256 at this size and time. refused is
// the last reported evidence that the device runs another program, or nil after a frame was located
// in the file. taken is set once the file was reported to Dialects.Taken.
type givenFile struct {
	size    int64
	time    time.Time
	sum     string
	refused error
	taken   bool
}

// hashOf returns the SHA-256 of the file at path in hexadecimal digits. It returns "" if the file
// cannot be read, is not regular or exceeds maxHashed. It rereads only a file with a new size or
// time.
func hashOf(t *tracer, path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxHashed {
		return ""
	}
	if old := t.files.givenFiles[path]; old.sum != "" && old.size == info.Size() && old.time.Equal(info.ModTime()) {
		return old.sum
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return ""
	}
	sum := hex.EncodeToString(h.Sum(nil))
	g := t.files.givenFiles[path]
	g.size, g.time, g.sum = info.Size(), info.ModTime(), sum
	keepGiven(t, path, g)
	return sum
}

func keepGiven(t *tracer, path string, g givenFile) {
	if t.files.givenFiles == nil {
		t.files.givenFiles = make(map[string]givenFile)
	}
	t.files.givenFiles[path] = g
}

// reportTaken calls Dialects.Taken for the file of a frame's module, if the operator gave the file.
// It reports each file once.
func reportTaken(t *tracer, f *judge.Frame) {
	m := f.Place.Image
	if m == nil || !m.Given || t.opt.Taken == nil {
		return
	}
	if g := t.files.givenFiles[m.Path]; !g.taken {
		g.taken = true
		keepGiven(t, m.Path, g)
		t.opt.Taken(m.Path)
	}
}

// reportRefused calls Dialects.Refused if the log shows that the device does not run the operator's
// file. It repeats the last reason only if a frame was located in the file in between.
func reportRefused(t *tracer, f *judge.Frame) {
	m := f.Place.Image
	if m == nil || !m.Given || t.opt.Refused == nil {
		return
	}
	refused := f.Place.Err
	if refused != nil && !judge.IsOtherProgram(refused) {
		return
	}
	if g := t.files.givenFiles[m.Path]; g.refused != refused {
		g.refused = refused
		keepGiven(t, m.Path, g)
		if refused != nil {
			t.opt.Refused(m.Path, refused)
		}
	}
}
