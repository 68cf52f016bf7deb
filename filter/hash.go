package filter

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"time"
)

// maxHashed is the size of the largest file that is compared with a hash in the log, in bytes. Firmware
// has a few megabytes, and its debug information some tens.
const maxHashed = 512 << 20

// A hashed is the SHA-256 of a file that had this size and time.
type hashed struct {
	size int64
	time time.Time
	sum  string
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
	if old, ok := t.hashes[path]; ok && old.size == info.Size() && old.time.Equal(info.ModTime()) {
		return old.sum
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return ""
	}
	if t.hashes == nil {
		t.hashes = make(map[string]hashed)
	}
	sum := hex.EncodeToString(h.Sum(nil))
	t.hashes[path] = hashed{info.Size(), info.ModTime(), sum} // one for each image of the operator
	return sum
}
