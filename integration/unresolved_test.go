//go:build linux

package integration

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

var closingLine = regexp.MustCompile(`(?m)^symfilter: [1-9][0-9]* of [0-9]+ address(es)? stayed unresolved: `)

// In logs of every dialect, without any file, all addresses stay unresolved. Their number must be
// reported at the end of the run.
func TestLogsWithoutFilesAreCounted(t *testing.T) {
	t.Parallel()
	archives, err := filepath.Glob("../internal/dialect/testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	counted := 0
	for _, path := range archives {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		dialects := "auto"
		if filepath.Base(path) == "addresses.txtar" {
			dialects = "auto,addresses"
		}
		for i := 1; i < len(archive.Files); i++ {
			log, frames := archive.Files[i-1], archive.Files[i]
			if frames.Name != log.Name+" frames" || len(bytes.TrimSpace(frames.Data)) == 0 {
				continue
			}
			counted++
			cmd := exec.Command(command, "--dialects="+dialects, "--debug-file-directory", t.TempDir())
			cmd.Stdin = bytes.NewReader(log.Data)
			var messages strings.Builder
			cmd.Stderr = &messages
			if err := cmd.Run(); err != nil || !closingLine.MatchString(messages.String()) {
				t.Errorf("%s, %s: %v, the closing line does not count it:\n%s", filepath.Base(path), log.Name, err, &messages)
			}
		}
	}
	if counted < 46 {
		t.Errorf("%d logs", counted)
	}
}
