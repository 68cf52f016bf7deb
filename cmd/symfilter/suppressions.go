package main

import (
	"fmt"
	"os"

	"github.com/symfilter/symfilter/internal/publish"
	"github.com/symfilter/symfilter/internal/wording"
)

// A suppressionsFlag is --supp-check: a file of suppressions to compare with the findings.
type suppressionsFlag struct {
	path fileName
	file *publish.SuppressionFile // nil without the flag
}

// load reads the file. The run's text output then lists the unneeded suppressions.
func (s *suppressionsFlag) load() error {
	if s.path == "" {
		return nil
	}
	in, err := os.Open(string(s.path))
	if err != nil {
		return fmt.Errorf("--supp-check %s: %w", s.path, wording.Cause(err))
	}
	defer in.Close()
	if s.file, err = publish.ReadSuppressions(in, string(s.path)); err != nil {
		return fmt.Errorf("--supp-check %s: %w; Valgrind would refuse the file, too", s.path, wording.Cause(err))
	}
	return nil
}

func (s *suppressionsFlag) check(c *config) error {
	if s.path == "" {
		return nil
	}
	return refuse("contradicts --supp-check: remove one of them",
		usedFlag{"--baseline", c.gates.baseline != ""}, usedFlag{"--diff", c.gates.diff}, usedFlag{"--follow", c.follow.on})
}

func (s *suppressionsFlag) read() []string {
	if s.path == "" {
		return nil
	}
	return []string{string(s.path)}
}
