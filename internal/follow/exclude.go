package follow

import (
	"fmt"
	"path/filepath"
	"strings"
)

// exclusions are the patterns of Options.Exclude. Patterns with a separator are absolute.
type exclusions []string

func newExclusions(patterns []string) (e exclusions, err error) {
	for _, p := range patterns {
		if p == "" {
			return nil, fmt.Errorf("a pattern of files to exclude is empty")
		}
		if _, err := filepath.Match(p, ""); err != nil {
			return nil, fmt.Errorf("%s: %w", p, err)
		}
		if strings.ContainsRune(p, filepath.Separator) {
			if p, err = filepath.Abs(p); err != nil {
				return nil, err
			}
		}
		e = append(e, p)
	}
	return e, nil
}

// match reports whether the file at an absolute path is excluded.
func (e exclusions) match(path string) bool {
	for _, p := range e {
		if !strings.ContainsRune(p, filepath.Separator) {
			if ok, _ := filepath.Match(p, filepath.Base(path)); ok {
				return true
			}
			continue
		}
		for at := path; ; {
			if ok, _ := filepath.Match(p, at); ok {
				return true
			}
			dir := filepath.Dir(at)
			if dir == at {
				break
			}
			at = dir
		}
	}
	return false
}
