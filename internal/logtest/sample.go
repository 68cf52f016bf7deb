package logtest

import (
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// Hostile are control characters and sequences that a terminal obeys.
var Hostile = []string{
	"\x1b]0;title\a", "\x1b]52;c;aGk=\x1b\\", "\x1b[5n", "\x1b[2J", "\x1bP$q\"p\x1b\\", "\x9b5n", "\u009b5n", "\u202e", "\u2065", "\u2066", "\a", "\b\b", "\r", "\x0e", "\x7f",
	"\x1b[1;31m", "\x1b[", "\x1b", "\xe2\x80", "\xff", "\u2028", "\x00", "\t", "é", "\x1b[?1049h", "\x1b[38;5;1m", "\x1b[1;2;3;4;5;6;7;8;9;10;11;12;13;14;15;16;17;18;19;20;21;22;23;24;25m",
}

// Samples returns the logs in the archives whose paths match pattern. The logs are the first,
// third, fifth… file of each archive.
func Samples(t testing.TB, pattern string) (logs []string) {
	t.Helper()
	for _, archive := range Archives(t, pattern) {
		for i := 0; i < len(archive.Files); i += 2 {
			logs = append(logs, string(archive.Files[i].Data))
		}
	}
	return logs
}

// Archives returns the archives whose paths match pattern. If no path matches, it fails the test.
func Archives(t testing.TB, pattern string) (all []*txtar.Archive) {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no file matches %s: %v", pattern, err)
	}
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, archive)
	}
	return all
}
