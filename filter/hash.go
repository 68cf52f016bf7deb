package filter

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"time"

	"github.com/symfilter/symfilter/internal/judge"
)

// maxHashed is the size of the largest file that is compared with a hash in the log, in bytes. Firmware
// has a few megabytes, and its debug information some tens.
const maxHashed = 512 << 20

// A givenFile describes a file that the operator names: its SHA-256 when it had this size and time,
// the last reported reason why the device runs another program, and whether it was taken for a module.
type givenFile struct {
	size    int64
	time    time.Time
	sum     string
	refused error
	taken   bool
}

// hashOf returns the SHA-256 of the file at path in hexadecimal digits, or "" if it cannot be read. It
// reads the file again if that has changed.
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

// keepGiven keeps g for the file at path. There is one for each image of the operator.
func keepGiven(t *tracer, path string, g givenFile) {
	if t.files.givenFiles == nil {
		t.files.givenFiles = make(map[string]givenFile)
	}
	t.files.givenFiles[path] = g
}

// reportTaken reports the file of a frame if the operator has named it, once.
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

// reportRefused reports the file of a frame if the log shows that the device runs another program. The
// same reason is reported again only after the file was right.
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
