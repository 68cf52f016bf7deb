package main

import "strings"

// A fileKind is a kind of file that is not a log, and that no reader of symfilter decodes.
type fileKind struct {
	begins string
	name   string
	advice string // FILE stands for the file's name
}

var (
	elfFile  = &fileKind{name: "an ELF file", advice: "to use its symbols, write --symbol-path FILE"}
	coreFile = &fileKind{name: "a core file", advice: "use gdb to read it"}
)

// fileKinds are the kinds that are known by their first bytes.
var fileKinds = []*fileKind{
	{"PK\x03\x04", "a zip file", "to read the logs in it, write unzip -p FILE | symfilter; to use debug files in it, --symbol-path FILE"},
	{"PK\x05\x06", "a zip file", "it is empty"},
	{"PERFILE2", "a recording of perf", "perf script -i FILE prints its stacks, with names if perf finds the debug files"},
	{"2ELIFREP", "a recording of perf", "perf script -i FILE prints its stacks, with names if perf finds the debug files"}, // of the other byte order
	{"LPKSHHRH", "a file of systemd's journal", "write journalctl --file FILE -o cat | symfilter"},
	{"MDMP\x93\xa7", "a minidump", "use minidump-stackwalk to read it"},
	{"7z\xbc\xaf\x27\x1c", "a 7z file", "write 7z x -so FILE | symfilter"},
	{"\x04\x22\x4d\x18", "a file compressed with lz4", "write lz4 -dc FILE | symfilter"},
	{"\x1f\x9d", "a file compressed with compress", "write zcat FILE | symfilter"},
}

// kindSize is the number of bytes that decide which kind a file is: ELF's type is in the last two.
const kindSize = 18

// kindOf returns the kind of file that begins with b, or nil for a log.
func kindOf(b []byte) *fileKind {
	switch elf, core := elfKind(b); {
	case core:
		return coreFile
	case elf:
		return elfFile
	}
	for _, k := range fileKinds {
		if strings.HasPrefix(string(b), k.begins) {
			return k
		}
	}
	return nil
}

// hint returns what to do with a file of the kind.
func (k *fileKind) hint(name string) string {
	if name == standardName {
		name = "FILE"
	}
	return "is " + k.name + ", not a log, and was printed unchanged; " + strings.ReplaceAll(k.advice, "FILE", name)
}
