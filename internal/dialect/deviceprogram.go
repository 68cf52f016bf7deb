package dialect

import "bytes"

// A Program holds a device log's facts about the file of its program. Empty fields are not known.
type Program struct {
	Hash    string // first hexadecimal digits, in lower case, of the file's SHA-256
	ID      string // first hexadecimal digits, in lower case, of its build ID
	Version string // version of its build, which is also a string in the file
}

// Bounds of the fields of a Program, in bytes.
const (
	minProgramDigits = 8
	maxProgramDigits = 64
	maxVersion       = 100
)

// bounded returns p without the values of fields that are too long.
func (p Program) bounded() Program {
	if len(p.Hash) > maxProgramDigits {
		p.Hash = ""
	}
	if len(p.ID) > maxProgramDigits {
		p.ID = ""
	}
	if len(p.Version) > maxVersion {
		p.Version = ""
	}
	return p
}

// Restarts reports whether a program starts at a line. before and p are the facts before and after
// that line. Restarts ignores a new Hash, because ESP-IDF also prints the hash after a backtrace.
func (p Program) Restarts(before Program) bool {
	return before.Version != "" && p.Version != before.Version || before.ID != "" && p.ID != before.ID
}

// Marks of lines with facts about the program on a device:
//
//	I (29) cpu_start: ELF file SHA256:  9d0e9a1f0...
//	*** Booting Zephyr OS build v3.7.0-123-gb7a06954094c ***
//	*** Using Zephyr OS v3.6.99-100befc70c74 ***
//	[00:00:00.010,000] <inf> mflt: GNU Build ID: 4c6f7a1be0d5a6f0c9a1
var (
	espHashMark    = []byte("ELF file SHA256:")
	zephyrMark     = []byte("Zephyr OS ")
	gnuBuildIDMark = []byte("GNU Build I")
)

// programMarks are the marks in lines that may have no address.
var programMarks = [...][]byte{zephyrMark, gnuBuildIDMark}

// A ProgramSearch finds the lines of one block of a log that have a fact about a device's program,
// but no address. The zero value is ready for use. Each block needs a new ProgramSearch.
type ProgramSearch struct {
	// 1 plus the offset of each mark's next occurrence; 0: not known
	next [len(programMarks)]int
}

// Next returns the offset of the first mark in b at the given offset or later, or len(b). The
// offset must not decrease between calls.
func (s *ProgramSearch) Next(b []byte, at int) int {
	first := len(b)
	for i, mark := range programMarks {
		if s.next[i] <= at {
			s.next[i] = len(b) + 1
			if n := bytes.Index(b[at:], mark); n >= 0 {
				s.next[i] = at + n + 1
			}
		}
		first = min(first, s.next[i]-1)
	}
	return first
}

func (f *factLog) deviceLine(line []byte, number int64) {
	p := f.program
	if at := bytes.Index(line, espHashMark); at >= 0 {
		// 8 to 64 digits, depending on the configuration of ESP-IDF
		digitsAt(&p.Hash, line, at+len(espHashMark))
	}
	if at := bytes.Index(line, gnuBuildIDMark); at >= 0 {
		if at += len(gnuBuildIDMark); hasAt(line, at, "D:") || hasAt(line, at, "d:") {
			digitsAt(&p.ID, line, at+len("D:"))
		}
	}
	if at := bytes.Index(line, zephyrMark); at >= 0 {
		versionAt(&p.Version, line, at+len(zephyrMark))
	}
	if p != f.program {
		f.touch(number)
		f.SetProgram(p)
	}
}

// programLine reads the facts about a device's program from a line.
func programLine(r *Reader, line []byte, _ int) { r.facts.deviceLine(line, r.number) }

// digitsAt sets digits to the hexadecimal digits after blanks at the given offset, if their number
// is within a Program's bounds.
func digitsAt(digits *string, line []byte, at int) {
	at = blanksAfter(line, at)
	if end := hexDigits(line, at); end-at >= minProgramDigits && end-at <= maxProgramDigits {
		*digits = string(bytes.ToLower(line[at:end]))
	}
}

// versionAt sets version to the version in line[at:], the rest of Zephyr's banner: "build v3.7.0
// ***". A banner that a reset has cut off does not end with asterisks.
func versionAt(version *string, line []byte, at int) {
	line = bytes.TrimPrefix(line[at:], []byte("build "))
	if end := bytes.IndexByte(line, ' '); end > 0 && end <= maxVersion && bytes.Contains(line[end:], []byte("***")) {
		*version = string(line[:end])
	}
}
