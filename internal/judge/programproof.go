package judge

import (
	"bytes"
	"debug/elf"
	"errors"
	"strings"

	"github.com/symfilter/symfilter/internal/dialect"
)

// Reasons why a file is not the program on the device.
var (
	ErrHash    = errors.New("the log has the SHA-256 of another file; --force-image uses this file anyway")
	ErrBuild   = errors.New("the log has the build ID of another file; --force-image uses this file anyway")
	ErrVersion = errors.New("the log has a version of Zephyr that is not in the file; --force-image uses the file anyway")
)

// IsOtherProgram reports whether err, from a Place, means that the device runs another program.
func IsOtherProgram(err error) bool { return err == ErrHash || err == ErrBuild || err == ErrVersion }

// programEvidence lists the facts about a program in a log, each with a function that compares it
// with a file. known is false if the file shows nothing about the fact.
var programEvidence = []struct {
	err   error
	match func(p *dialect.Program, m *Image) (equal, known bool)
}{
	{ErrHash, func(p *dialect.Program, m *Image) (equal, known bool) {
		if p.Hash == "" || m.Hash == nil {
			return false, false
		}
		sum := m.Hash()
		return strings.HasPrefix(sum, p.Hash), sum != ""
	}},
	{ErrBuild, func(p *dialect.Program, m *Image) (equal, known bool) {
		return strings.HasPrefix(m.ID.String(), p.ID), p.ID != "" && !m.ID.IsZero()
	}},
	{ErrVersion, func(p *dialect.Program, m *Image) (equal, known bool) {
		if p.Version == "" || m.File == nil {
			return false, false
		}
		return m.hasText(p.Version)
	}},
}

// judgePrograms refutes the operator's files if the log shows that another program runs. If one of
// the files is that program, judgePrograms refutes none: the others may be its boot loader or the
// code in its ROM.
func (t *Trace) judgePrograms(p dialect.Program) {
	if p == (dialect.Program{}) {
		return
	}
	other := make(map[*verdict]error)
	for _, e := range programEvidence {
		var refuted []*verdict
		found := false
		for _, v := range t.modules {
			if v.image.Given && v.image.Err == nil {
				equal, known := e.match(&p, v.image)
				found = found || equal && known
				if known && !equal && !v.image.Forced {
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
			v.refuted = nil // the device no longer runs the earlier program
		}
	}
}

type textFound struct{ yes, known bool }

// hasText reports whether the file has text outside of its debug information. known is false if the
// file has no code, like separate debug files.
func (m *Image) hasText(text string) (yes, known bool) {
	key := about(m).text(text).sum()
	if found, ok := m.names.memory.texts.get(key, maxTexts); ok {
		return found.yes, found.known
	}
	sections := m.File.Sections()
	known = len(sections) == 0 || m.File.HasCode()
	search := func(data []byte) {
		m.names.quota.Spend(len(data) / bytesPerStep)
		yes = yes || bytes.Contains(data, []byte(text))
	}
	for _, s := range m.Segments {
		if known && !yes {
			search(m.File.Loaded(s.Addr))
		}
	}
	for i, s := range sections { // Zephyr can omit the texts of messages from the device's memory
		if known && !yes && s.Flags&elf.SHF_ALLOC == 0 && s.Type == elf.SHT_PROGBITS && !strings.HasPrefix(s.Name, ".debug") {
			data, _ := m.File.DataOf(i)
			search(data)
		}
	}
	m.names.memory.texts.put(key, textFound{yes, known}, maxTexts)
	return yes, known
}
