package asis

import (
	"path/filepath"
	"strings"
)

// A Program is another symbolizer.
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
)

// programs are the other symbolizers that are answered for.
var programs = [...]Program{
	{Name: "llvm-symbolizer", Env: "LLVM_SYMBOLIZER_OPTS"},
	{Name: "llvm-addr2line", Env: "LLVM_ADDR2LINE_OPTS", gnu: true},
	{Name: "addr2line", gnu: true, family: ofBinutils},
}

// unready are names of symbolizers that are not supported yet.
var unready = [...]string{"eu-addr2line"}

// Names returns the names of the programs that are answered for.
func Names() (names []string) {
	for i := range programs {
		names = append(names, programs[i].Name)
	}
	return names
}

// Named returns the program that a file name stands for: its own name, also after the prefix of a
// target and before a version, such as x86_64-linux-gnu-addr2line or llvm-symbolizer-19. It returns
// nil, and the name of a symbolizer, if no answer is possible yet. name is empty if word names no
// symbolizer at all.
func Named(word string) (p *Program, name string) {
	base := strings.TrimSuffix(filepath.Base(word), ".exe")
	if i := strings.LastIndexByte(base, '-'); i > 0 && i+1 < len(base) && strings.Trim(base[i+1:], "0123456789.") == "" {
		base = base[:i]
	}
	is := func(name string) bool { return base == name || strings.HasSuffix(base, "-"+name) }
	for _, name := range unready { // before addr2line, with which it ends
		if is(name) {
			return nil, name
		}
	}
	for i := range programs {
		if is(programs[i].Name) {
			return &programs[i], programs[i].Name
		}
	}
	return nil, ""
}
