//go:build linux

package integration

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"
)

// maxRecordedText bounds a text in a recording, in bytes. Longer texts, and texts that are not
// UTF-8, are stored as files.
const maxRecordedText = 2000

// keepText returns the form of a text in a recording. A short text is kept with its folders folded.
// A long text, or one that is not UTF-8, is stored as a file, and the form is "file HASH". The
// method text is the inverse.
func (r *recorder) keepText(t testing.TB, data []byte) string {
	s := fold(string(data))
	if len(s) <= maxRecordedText && utf8.ValidString(s) {
		return s
	}
	return "file " + r.keep(t, data)
}

func (r *recorder) text(t testing.TB, s string) []byte {
	if hash, isFile := strings.CutPrefix(s, "file "); isFile {
		return r.content(t, hash)
	}
	return []byte(unfold(s))
}

// keep stores the content of a file, and returns its hash. The method content returns the stored
// content. In text, keep folds the names of folders, and content unfolds them.
func (r *recorder) keep(t testing.TB, data []byte) (hash string) {
	if utf8.Valid(data) {
		data = []byte(fold(string(data)))
	} else {
		data = bytes.ReplaceAll(data, []byte(filepath.Dir(command)), []byte(mainFolder+strings.Repeat("0", 10)))
	}
	sum := sha256.Sum256(data)
	hash = hex.EncodeToString(sum[:8])
	w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	if err != nil {
		t.Fatal(err)
	}
	packed := w.EncodeAll(data, nil)
	w.Close()
	if len(packed) > maxRecordedFile {
		r.drop(t)
		return ""
	}
	path := filepath.Join(recordings, "files", hash+".zst")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, packed, 0o644); err != nil {
		t.Fatal(err)
	}
	return hash
}

func (r *recorder) content(t testing.TB, hash string) []byte {
	t.Helper()
	packed, err := os.ReadFile(filepath.Join(recordings, "files", hash+".zst"))
	if err != nil {
		t.Fatal(err)
	}
	d, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	data, err := d.DecodeAll(packed, nil)
	if err != nil {
		t.Fatal(err)
	}
	if utf8.Valid(data) {
		return []byte(unfold(string(data)))
	}
	return bytes.ReplaceAll(data, []byte(mainFolder+strings.Repeat("0", 10)), []byte(filepath.Dir(command)))
}
