package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/symfilter/symfilter/internal/address"
	"github.com/symfilter/symfilter/internal/doctor"
	"github.com/symfilter/symfilter/internal/findings"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/symbolize"
)

const (
	// maximum number of files kept open; a desktop program maps a few hundred
	maxAddrModules  = 1024
	maxShownMistake = 300 // bytes of a mistaken line to print; a line may have 64 KiB
)

type addresses struct {
	*session
	reader *address.Reader
	file   *addrModule            // for words without a file; nil: each word names its file
	others map[string]*addrModule // files named in words
	shown  report.Options
	json   bool

	own     *findings.Own
	sources *sourceText
	links   bool // files and lines are hyperlinks

	to         io.Writer // gets the answers
	out        []byte    // answers that are not written yet
	unresolved doctor.Sum
	// answers for addresses outside of their file; added to unresolved last, since a Sum keeps the
	// last reason for a module
	outside doctor.Sum

	lines     int64 // lines of standard input so far
	noAddress mistakes
	noFile    mistakes // words whose file is missing or cannot be used
	unwritten bool     // the output could not be written
}

// A mistakes counts words that cannot be looked up, and keeps the first of them.
type mistakes struct {
	n     int64
	first string // the first counted word, and why it cannot be looked up
}

func (m *mistakes) note(text string) {
	if m.n++; m.n > 1 {
		return
	}
	if m.first = text; len(text) > maxShownMistake {
		m.first = strings.ToValidUTF8(text[:maxShownMistake], "") + "…"
	}
}

// An addrModule is a file whose addresses are looked up.
type addrModule struct {
	doctor.Subject
	err    error           // why the file cannot be used; nil if it can
	ctx    context.Context // ends the wait for its debug file
	cancel context.CancelFunc
}

func (a *addresses) examined(of doctor.Subject) (*addrModule, error) {
	if err := of.Examine(); err != nil {
		return nil, err
	}
	if err := of.NotProgram(); err != nil {
		return nil, err
	}
	m := &addrModule{Subject: of}
	m.ctx, m.cancel = context.WithTimeout(context.Background(), a.c.wait.of(true).Local)
	return m, nil
}

// module returns the file named at the beginning of a word, or the file of the command line if word
// is empty.
func (a *addresses) module(word string) *addrModule {
	if word == "" {
		return a.file
	}
	if m := a.others[word]; m != nil {
		return m
	}
	of, err := doctor.SubjectOf(word)
	m := &addrModule{Subject: of, err: err}
	if err == nil {
		if m, err = a.examined(of); err != nil {
			m = &addrModule{Subject: of, err: err}
		}
	}
	if len(a.others) >= maxAddrModules {
		a.forget()
	}
	if a.others == nil {
		a.others = make(map[string]*addrModule)
	}
	a.others[word] = m
	return m
}

func (a *addresses) forget() {
	for _, m := range a.others {
		if m.cancel != nil {
			m.cancel()
		}
	}
	clear(a.others)
}

// A located is the answer for an address, or for consecutive addresses of one source line.
type located struct {
	module    *addrModule // nil if the file is missing or cannot be used
	word      string      // as in the request; empty for an address of the command line's file
	addr, end uint64      // end is after the last address of a range; 0: one address
	hasAddr   bool
	resolved  bool   // the word is a name or an offset in the file, so addr is not part of the word
	doubt     string // why the word may mean another address; empty if it is certain
	continues bool   // another answer for the same word follows

	frames   []symbolize.Frame
	recorded []symbolize.Frame   // frames with the files as debug information names them
	variable *symbolize.Variable // nil if frames are the answer
	err      error               // why there is no answer; nil if no symbol covers the address
}

func (l *located) found() bool { return len(l.frames) > 0 || l.variable != nil }

// answer prints the answers for w. text is w as the user wrote it.
func (a *addresses) answer(text string, w address.Word) {
	m := a.module(w.Module)
	l := located{module: m, addr: w.Addr, end: w.End, hasAddr: w.Name == "" && !w.InFile, resolved: w.Name != "" || w.InFile}
	if w.Module != "" || l.resolved {
		l.word = strings.TrimSpace(text)
	}
	if m.err != nil {
		l.err, l.module = m.err, nil
		a.noFile.note(l.word + ": " + m.err.Error())
		a.print(&l)
		return
	}
	if w.Name != "" {
		a.named(l, w)
		return
	}
	if w.InFile {
		addr, err := m.AddressAt(w.Addr)
		if err != nil {
			l.err = err
			a.count(&m.Subject, err)
			a.print(&l)
			return
		}
		if l.addr, l.hasAddr = addr, true; w.End != 0 {
			l.end = addr + (w.End - w.Addr)
		}
	}
	if l.end != 0 {
		a.listing(l)
		return
	}
	a.look(&l)
	a.tell(&l)
}

// named looks up the symbols that have the name in w, and prints an answer for each of their
// addresses. l is the common part of these answers.
func (a *addresses) named(l located, w address.Word) {
	m := l.module
	all, err := a.Symbolizer.Named(m.ctx, m.Location(0), w.Name)
	if err == nil && len(all) == 0 {
		err = m.NoName(a.Symbolizer, w.Name)
	}
	if err != nil {
		l.err = err
		a.count(&m.Subject, err)
		a.print(&l)
		return
	}
	if fits := slices.DeleteFunc(slices.Clone(all), func(e symbolize.Extent) bool { return !hasSize(e, w.Size) }); w.Size != 0 && len(fits) > 0 {
		all = fits
	}
	for i, e := range all {
		at := l
		at.addr, at.hasAddr, at.continues = e.Addr+w.Addr, true, i+1 < len(all)
		at.doubt = doubtOf(e, w)
		a.look(&at)
		a.tell(&at)
	}
}

// hasSize reports whether e has this size. Linux computes sizes as distances to the next symbol, so
// the distance is accepted, too.
func hasSize(e symbolize.Extent, size uint64) bool {
	return e.Size == size || e.Next != 0 && e.Next-e.Addr == size
}

// doubtOf returns the reason why w may refer to another symbol than e, or "" if there is none.
func doubtOf(e symbolize.Extent, w address.Word) string {
	size := e.Size
	if size == 0 && e.Next != 0 {
		size = e.Next - e.Addr
	}
	switch {
	case size == 0: // unknown
	case w.Size != 0 && !hasSize(e, w.Size):
		return fmt.Sprintf("the function %s has size 0x%x in this file, not 0x%x: the file may be of another build", w.Name, size, w.Size)
	case w.Addr > size:
		return fmt.Sprintf("the offset is beyond the end of %s, which has 0x%x bytes", w.Name, size)
	}
	return ""
}

func (a *addresses) look(l *located) {
	m := l.module
	frames, err := a.Symbolizer.Ask(m.ctx, nil, m.Location(l.addr), symbolize.Policy{})
	l.recorded, l.err = frames, err
	l.frames = slices.Clone(frames)
	for i := range l.frames {
		l.frames[i].File = a.shown.ShownFile(l.frames[i].File)
	}
	if l.variable = a.variableAt(l); l.variable != nil {
		l.frames = nil
	}
	switch {
	case l.found():
		l.err = nil
	case l.err == nil:
		l.err = m.Outside(a.Symbolizer, l.addr)
	}
}

// variableAt returns the variable at l.addr, or nil if there is none. Frames take precedence if the
// innermost frame has a file, or if the member at l.addr is unknown.
func (a *addresses) variableAt(l *located) *symbolize.Variable {
	if l.err != nil || len(l.frames) > 0 && l.frames[0].File != "" {
		return nil
	}
	v, err := a.Symbolizer.AskData(l.module.ctx, l.module.Location(l.addr), symbolize.Policy{})
	if err != nil || len(l.frames) > 0 && v.Member == "" {
		return nil
	}
	return &v
}

// tell prints an answer, and counts it if it has no name.
func (a *addresses) tell(l *located) {
	if !l.found() {
		a.count(&l.module.Subject, l.err)
	}
	a.print(l)
}

func (a *addresses) count(of *doctor.Subject, err error) {
	c := doctor.Counts{Modules: []symbolize.Unresolved{of.Unresolved(1, err)}, Failed: 1}
	if _, outside := errors.AsType[*doctor.OutsideError](err); outside {
		a.outside.Add(c)
	} else {
		a.unresolved.Add(c)
	}
}

// listing prints an answer for each source line in the range of l. It stops if the output cannot be
// written.
func (a *addresses) listing(l located) {
	row := l
	row.end = 0
	for addr := l.addr; addr < l.end; addr++ {
		next := l
		next.addr = addr
		a.look(&next)
		next.dropColumns()
		if row.end != 0 && next.sameLine(&row) {
			row.end++
			continue
		}
		if row.end != 0 {
			row.continues = true
			a.tell(&row)
			if len(a.out) >= addrChunk && !a.flush() {
				return
			}
		}
		row, row.end = next, addr+1
	}
	a.tell(&row)
}

// dropColumns removes the columns, which differ within a line.
func (l *located) dropColumns() {
	for i := range l.frames {
		l.frames[i].Column, l.recorded[i].Column = 0, 0
	}
}

// sameLine reports whether two answers have the same functions and lines, or the same member of a
// variable.
func (l *located) sameLine(o *located) bool {
	switch {
	case l.variable != nil && o.variable != nil:
		return l.variable.Name == o.variable.Name && l.variable.Member == o.variable.Member
	case l.variable != nil || o.variable != nil:
		return false
	case len(l.frames) == 0 && len(o.frames) == 0:
		return l.err == o.err || l.err != nil && o.err != nil && l.err.Error() == o.err.Error()
	}
	return slices.EqualFunc(l.frames, o.frames, func(f, g symbolize.Frame) bool {
		return f.Func == g.Func && f.File == g.File && f.Line == g.Line
	})
}
