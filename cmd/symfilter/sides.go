package main

import "fmt"

// noDash is the value of config.dash if the command line has no word --.
const noDash = -1

// sides returns the inputs on both sides of a comparison: those before and those after the word --,
// of which each side has at least one. Without it there must be two inputs, one for each side.
func (c *config) sides(files []string) (before, after []string, err error) {
	if c.dash != noDash && c.dash <= len(files) {
		before, after = files[:c.dash], files[c.dash:]
	} else if len(files) == 2 {
		before, after = files[:1], files[1:]
	}
	if len(before) == 0 || len(after) == 0 {
		return nil, nil, usageError{fmt.Errorf("--diff compares OLD with NEW: name two files, or any number on both sides of a word --, as in --diff old/* -- new/*")}
	}
	return before, after, nil
}
