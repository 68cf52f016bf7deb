package dialect

import (
	"bytes"
	"debug/elf"
	"errors"
	"slices"
	"strings"

	"github.com/symfilter/symfilter/internal/object"
)

// A Program holds what the log of a device has about the file of its program. Empty fields are not
// known.
type Program struct {
	Hash    string // first hexadecimal digits, in lower case, of the SHA-256 of the file
	ID      string // first hexadecimal digits, in lower case, of its build ID
	Version string // of its build, which is one of the strings in the file
}

// Bounds of the fields of a Program, in bytes.
const (
	minProgramDigits = 8
	maxProgramDigits = 64
	maxVersion       = 100
)

// bounded returns p without the fields that are too long.
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

// Restarts reports whether the line that has changed before to p is of a program that starts. The hash of
// ESP-IDF also comes after a backtrace.
func (p Program) Restarts(before Program) bool {
	return before.Version != "" && p.Version != before.Version || before.ID != "" && p.ID != before.ID
}

// The marks of the lines with facts about the program of a device:
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

// programMarks are the marks that lines without an address may have.
var programMarks = [...][]byte{zephyrMark, gnuBuildIDMark}

// A ProgramSearch finds, in one block of a log, the lines with facts about the program of a device that
// have no address. The zero value is ready; each block needs its own.
type ProgramSearch struct {
	next [len(programMarks)]int // offset after the beginning of the next one of each of programMarks; 0: not known
}

// Next returns the offset of the first mark in b from at on, or len(b). at must not be less than in the
// last call.
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

// programFacts takes the facts about the program from a line.
func (r *Reader) programFacts(line []byte) {
	p := r.facts.program
	if at := bytes.Index(line, espHashMark); at >= 0 {
		digitsAt(&p.Hash, line, at+len(espHashMark)) // 8 to 64 digits, as ESP-IDF is configured
	}
	if at := bytes.Index(line, gnuBuildIDMark); at >= 0 {
		if at += len(gnuBuildIDMark); hasAt(line, at, "D:") || hasAt(line, at, "d:") {
			digitsAt(&p.ID, line, at+len("D:"))
		}
	}
	if at := bytes.Index(line, zephyrMark); at >= 0 {
		versionAt(&p.Version, line, at+len(zephyrMark))
	}
	if p != r.facts.program {
		r.touchFacts(r.number)
		r.facts.SetProgram(p)
	}
}

// programLine is programFacts as the fact of a header.
func programLine(r *Reader, line []byte, _ int) { r.programFacts(line) }

// digitsAt sets digits to the hexadecimal digits at at, after blanks, if there are enough.
func digitsAt(digits *string, line []byte, at int) {
	at = blanksAfter(line, at)
	if end := hexDigits(line, at); end-at >= minProgramDigits && end-at <= maxProgramDigits {
		*digits = string(bytes.ToLower(line[at:end]))
	}
}

// versionAt sets version to the one in line[at:], the rest of Zephyr's banner: "build v3.7.0 ***".
// A banner that a reset has cut does not end with asterisks.
func versionAt(version *string, line []byte, at int) {
	line = bytes.TrimPrefix(line[at:], []byte("build "))
	if end := bytes.IndexByte(line, ' '); end > 0 && end <= maxVersion && bytes.Contains(line[end:], []byte("***")) {
		*version = string(line[:end])
	}
}

// The reasons why a file is not the program of the device.
var (
	ErrHash    = errors.New("the log has the SHA-256 of another file; --force-image takes this one nevertheless")
	ErrBuild   = errors.New("the log has the build ID of another file; --force-image takes this one nevertheless")
	ErrVersion = errors.New("the log has the version of another build of Zephyr, which is not in the file; --force-image takes the file nevertheless")
)

// IsOtherProgram reports whether err, of a Place, is one of the reasons that the device runs another
// program.
func IsOtherProgram(err error) bool { return err == ErrHash || err == ErrBuild || err == ErrVersion }

// programEvidence lists, for each fact about the program, how a file is compared with it. known is
// false if the file shows nothing about the fact.
var programEvidence = []struct {
	err   error
	match func(p *Program, m *Image) (same, known bool)
}{
	{ErrHash, func(p *Program, m *Image) (same, known bool) {
		if p.Hash == "" || m.Hash == nil {
			return false, false
		}
		sum := m.Hash()
		return strings.HasPrefix(sum, p.Hash), sum != ""
	}},
	{ErrBuild, func(p *Program, m *Image) (same, known bool) {
		return strings.HasPrefix(m.ID.String(), p.ID), p.ID != "" && !m.ID.IsZero()
	}},
	{ErrVersion, func(p *Program, m *Image) (same, known bool) {
		if p.Version == "" || m.File == nil {
			return false, false
		}
		return m.hasText(p.Version)
	}},
}

// judgePrograms refutes the files that the operator has named if the log shows that another program
// runs. If one of them is that program, the others may be its boot loader or the code in its ROM.
func (t *Trace) judgePrograms(p Program) {
	if p == (Program{}) {
		return
	}
	other := make(map[*verdict]error)
	for _, e := range programEvidence {
		var refuted []*verdict
		found := false
		for _, v := range t.modules {
			if v.image.Given && v.image.Err == nil {
				same, known := e.match(&p, v.image)
				found = found || same && known
				if known && !same && !v.image.Forced {
					refuted = append(refuted, v)
				}
			}
		}
		for _, v := range refuted {
			if !found {
				other[v] = e.err
			}
		}
	}
	for _, v := range t.modules {
		switch err := other[v]; {
		case err != nil:
			v.refuted = err
		case IsOtherProgram(v.refuted):
			v.refuted = nil // the device runs another program than before
		}
	}
}

// A textFound is the result of hasText.
type textFound struct{ yes, known bool }

// hasText reports whether text is in the file, apart from its debug information. known is false if the
// file has no code, as separate debug files have none.
func (m *Image) hasText(text string) (yes, known bool) {
	key := about(m).text(text).sum()
	if found, ok := m.names.memory.texts.get(key, maxTexts); ok {
		return found.yes, found.known
	}
	sections := m.File.Sections()
	known = len(sections) == 0 || slices.ContainsFunc(sections, func(s object.Section) bool {
		return s.Flags&elf.SHF_EXECINSTR != 0 && s.Type != elf.SHT_NOBITS
	})
	search := func(data []byte) {
		m.names.quota.Spend(len(data) / bytesPerStep)
		yes = yes || bytes.Contains(data, []byte(text))
	}
	for _, s := range m.Segments {
		if known && !yes {
			search(m.File.Loaded(s.Addr))
		}
	}
	for i, s := range sections { // Zephyr can leave the texts of messages out of the memory of the device
		if known && !yes && s.Flags&elf.SHF_ALLOC == 0 && s.Type == elf.SHT_PROGBITS && !strings.HasPrefix(s.Name, ".debug") {
			data, _ := m.File.DataOf(i)
			search(data)
		}
	}
	m.names.memory.texts.put(key, textFound{yes, known}, maxTexts)
	return yes, known
}
