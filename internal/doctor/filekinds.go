package doctor

import (
	"cmp"
	"strings"

	"github.com/symfilter/symfilter/internal/profile"
)

// A fileKind is a kind of file that is not a log and that symfilter does not decode.
type fileKind struct {
	begins  string
	name    string
	advice  string // FILE is replaced by the file's name
	at      int    // offset of begins in the file
	printed string // printed form of the file; empty: unchanged
	program string // program that unpacks the file, if symfilter could not unpack it
}

var (
	zipFile  = &fileKind{begins: "PK\x03\x04", name: "a zip file", advice: "to read the logs in it, write unzip -p FILE | symfilter; to use debug files in it, --symbol-path FILE"}
	elfFile  = &fileKind{name: "an ELF file", advice: "to use its symbols, write --symbol-path FILE"}
	coreFile = &fileKind{name: "a core file", advice: "read it with gdb"}
	heapFile = &fileKind{name: "a file of Valgrind's DHAT or Massif", advice: profileAdvice}
)

// fileKinds are the kinds recognized by their first bytes.
var fileKinds = []*fileKind{
	zipFile,
	{begins: "PK\x05\x06", name: "a zip file", advice: "it is empty"},
	{begins: "ustar\x00", at: tarMagic, name: "a tar file", printed: "printed together with the headers of the files in it", advice: "write tar -xOf FILE | symfilter"},
	// GNU tar
	{begins: "ustar  \x00", at: tarMagic, name: "a tar file", printed: "printed together with the headers of the files in it", advice: "write tar -xOf FILE | symfilter"},
	{begins: "PERFILE2", name: "a recording of perf", advice: "perf script -i FILE prints its stacks, with names if perf finds the debug files"},
	// in the other byte order
	{begins: "2ELIFREP", name: "a recording of perf", advice: "perf script -i FILE prints its stacks, with names if perf finds the debug files"},
	{begins: "heap profile:", name: "a heap profile of gperftools", advice: profileAdvice},
	{begins: "heap_v2/", name: "a heap profile of jemalloc", advice: profileAdvice},
	{begins: "\x00\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x00", name: "a CPU profile of gperftools", advice: profileAdvice},
	// a profile begins with the first type of its samples
	{begins: "\x0a\x04\x08\x01\x10\x02", name: "a profile of pprof", advice: profileAdvice},
	{begins: "LPKSHHRH", name: "a journal file of systemd", advice: "write journalctl --file FILE -o cat | symfilter"},
	{begins: "MDMP\x93\xa7", name: "a minidump", advice: "read it with minidump-stackwalk"},
	{begins: `{"app_name":"`, name: "a crash report of macOS or iOS in JSON", advice: "atos resolves its addresses"},
	{begins: "7z\xbc\xaf\x27\x1c", name: "a 7z file", advice: "write 7z x -so FILE | symfilter"},
	{begins: "\x04\x22\x4d\x18", name: "a file compressed with lz4", advice: "write lz4 -dc FILE | symfilter"},
	{begins: "\x1f\x9d", name: "a file compressed with compress", advice: "write zcat FILE | symfilter"},
	{begins: "\x1f\x8b\x08", name: "a gzip file", program: "gzip"},
	{begins: "\x28\xb5\x2f\xfd", name: "a zstd file", program: "zstd"},
	{begins: "\xfd7zXZ\x00", name: "an xz file", program: "xz"},
}

// advice for files that symfilter profile reads, compressed files included
const profileAdvice = "write symfilter profile FILE"

const (
	tarMagic = 257 // offset of the magic of a tar file (POSIX, ustar)
	// bytes at the start of a file that decide its kind; Massif's files need the most: three lines,
	// one of them a command line
	kindSize = 1 << 10
)

// kindOf returns the kind of a file that begins with b, or nil for an unknown one, such as a log.
func kindOf(b []byte) *fileKind {
	switch elf, core := elfKind(b); {
	case core:
		return coreFile
	case elf:
		return elfFile
	case profile.IsTrace(b):
		return heapFile
	}
	for _, k := range fileKinds {
		if len(b) > k.at && strings.HasPrefix(string(b[k.at:]), k.begins) {
			return k
		}
	}
	return nil
}

// hint describes a file of the kind, with advice, as a part of a sentence. packed names the
// compression of the file, or is empty.
func (k *fileKind) hint(name, packed string) string {
	if packed != "" && k.advice != profileAdvice {
		name = "FILE"
	}
	if k.program != "" && packed == "" {
		return "begins like " + k.name + ", cannot be unpacked, and was printed unchanged; " + k.program + " -t " + name + " shows what is wrong"
	}
	advice := strings.ReplaceAll(cmp.Or(k.advice, "write "+k.program+" -dc FILE | symfilter"), "FILE", name)
	printed := cmp.Or(k.printed, "not a log, and was printed unchanged")
	if packed != "" && k.advice == profileAdvice {
		return "holds " + k.name + ", " + printed + "; " + advice
	}
	if packed != "" {
		return "holds " + k.name + ", " + printed + "; unpack it with " + packed + " -dc, and then " + advice
	}
	return "is " + k.name + ", " + printed + "; " + advice
}

// elfKind reports whether b begins an ELF file, and whether it is a core file.
func elfKind(b []byte) (elf, core bool) {
	const etCore = 4 // file type in either byte order
	elf = len(b) >= 18 && string(b[:4]) == "\x7fELF"
	return elf, elf && (b[16] == etCore || b[17] == etCore)
}
