package main

import "path/filepath"

// indexDir returns the directory of indexes of debug files, or an empty string
// where the user wants none or the environment names no place.
func (c *config) indexDir(getenv func(string) string) string {
	if c.noIndex {
		return ""
	}
	if dir := getenv("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "symfilter")
	}
	if home := getenv("HOME"); home != "" {
		return filepath.Join(home, ".cache", "symfilter")
	}
	return ""
}
