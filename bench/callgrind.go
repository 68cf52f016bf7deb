//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// annotate is the command line of callgrind_annotate, which is compared with symfilter's reader of
// profiles.
var annotate = []string{"callgrind_annotate", "--auto=no", "/dev/stdin"}

// profile returns a function that writes a Callgrind profile of about size bytes. Each part is
// a copy of a real, stripped program's profile.
func profile(size int64) func(b *binaries, path string) error {
	return func(_ *binaries, path string) error {
		dir, err := os.MkdirTemp("", "symfilter-bench-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		name := filepath.Join(dir, "out")
		cmd := exec.Command("valgrind", "--tool=callgrind", "--dump-instr=yes", "--callgrind-out-file="+name, "ls", "-lR", "/usr/lib/debug", "/usr/share/doc")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("valgrind: %w\n%s", err, out)
		}
		one, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		head, body, ok := bytes.Cut(one, []byte("part: 1\n"))
		if !ok {
			return errors.New("the Callgrind profile has no part")
		}
		return create(path, func(w *logWriter) {
			w.printf("%s", head)
			for i := 1; w.size < size; i++ {
				w.printf("part: %d\n%s\n", i, body)
			}
		})
	}
}
