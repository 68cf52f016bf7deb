package asis

import (
	"path/filepath"
	"strings"
)

// A Program is a symbolizer that symfilter can replace.
type Program struct {
	Name string // as its package installs it
	Env  string // the variable with words that come before the arguments

	gnu    bool // the defaults of addr2line
	family family
}

// A family is a project whose programs share options, messages and rules.
type family uint8

const (
	ofLLVM family = iota
	ofBinutils
	ofElfutils
)

// programs lists the symbolizers that symfilter can replace.
var programs = [...]Program{
	{Name: "llvm-symbolizer", Env: "LLVM_SYMBOLIZER_OPTS"},
	{Name: "llvm-addr2line", Env: "LLVM_ADDR2LINE_OPTS", gnu: true},
	{Name: "eu-addr2line", gnu: true, family: ofElfutils}, // before addr2line, its suffix
	{Name: "addr2line", gnu: true, family: ofBinutils},
}

// Names returns the names of the programs that symfilter can replace.
func Names() (names []string) {
	for i := range programs {
		names = append(names, programs[i].Name)
	}
	return names
}

// Named returns the program for a file name, or nil. The name may have a target's prefix and a
// version, as in x86_64-linux-gnu-addr2line and llvm-symbolizer-19.
func Named(word string) *Program {
	base := strings.TrimSuffix(filepath.Base(word), ".exe")
	if i := strings.LastIndexByte(base, '-'); i > 0 && i+1 < len(base) && strings.Trim(base[i+1:], "0123456789.") == "" {
		base = base[:i]
	}
	for i := range programs {
		if name := programs[i].Name; base == name || strings.HasSuffix(base, "-"+name) {
			return &programs[i]
		}
	}
	return nil
}
