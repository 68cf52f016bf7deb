package debuginfod

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// A headersFile caches the headers in DEBUGINFOD_HEADERS_FILE. Their values may be secrets, so they
// must not appear in messages.
type headersFile struct {
	path string

	mu    sync.Mutex
	size  int64
	mtime time.Time
	read  bool
	h     http.Header
	err   error
}

// headers returns the current headers. It reads the file again if it has changed. The caller must
// not modify the headers.
func (f *headersFile) headers() (http.Header, error) {
	if f.path == "" {
		return nil, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := os.Stat(f.path)
	if err != nil {
		return nil, fmt.Errorf("DEBUGINFOD_HEADERS_FILE: %w", err)
	}
	if f.read && info.Size() == f.size && info.ModTime().Equal(f.mtime) {
		return f.h, f.err
	}
	f.size, f.mtime, f.read = info.Size(), info.ModTime(), true
	text, err := readFile(f.path, maxHeaders)
	if err == nil {
		f.h, err = parseHeaders(string(text))
	}
	if f.err = err; err != nil {
		f.h, f.err = nil, fmt.Errorf("DEBUGINFOD_HEADERS_FILE: %w", err)
	}
	return f.h, f.err
}

// parseHeaders parses one header in each line, and skips blank lines. Errors have the number of the
// line, but not the value, which may be a secret.
func parseHeaders(text string) (http.Header, error) {
	h := http.Header{}
	n := 0
	for line := range strings.Lines(text) {
		n++
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		if !ok || !isToken(name) || strings.ContainsFunc(value, isControl) {
			return nil, fmt.Errorf("line %d is not a header: want \"Name: value\"", n)
		}
		switch name = http.CanonicalHeaderKey(name); name {
		case "Host", "Content-Length", "Transfer-Encoding", "Connection", "Accept-Encoding", "Range", "Trailer":
			return nil, fmt.Errorf("line %d: %s cannot be set", n, name)
		}
		h.Add(name, value)
	}
	return h, nil
}

// isToken reports whether s is a valid name of a header (RFC 9110, section 5.6.2).
func isToken(s string) bool {
	for _, c := range []byte(s) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return s != ""
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
