package main

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/internal/doctor"
	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/internal/input"
	"github.com/symfilter/symfilter/internal/profile"
	"github.com/symfilter/symfilter/internal/remote"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/internal/unpack"
	"github.com/symfilter/symfilter/internal/wording"
	"github.com/symfilter/symfilter/symbolize"
	"github.com/symfilter/symfilter/valgrind"
)

type profileFlags struct {
	show      string
	inclusive bool
	names     symbolize.Names // selects the symbolizer's names
}

var profileForms = [...]struct {
	name string
	form profile.Output
}{{outputText, profile.Text}, {outputPprof, profile.Pprof}, {outputFolded, profile.Folded}, {outputSpeedscope, profile.Speedscope}, {outputOwn, profile.Own}}

// outputOwn keeps the format of the input.
const outputOwn = "own"

func profileOutputs() (names []string) {
	for _, f := range profileForms {
		names = append(names, f.name)
	}
	return names
}

// A profileOutput is the value of symfilter profile --output.
type profileOutput struct{ list *outputList }

func (o profileOutput) Set(s string) error { return o.list.set(s, profileOutputs()) }

func runProfile(c *config, args []string, std standard) (int, error) {
	given := len(c.outputs) > 0
	if err := c.pickOutput(); err != nil {
		return exitUsage, err
	}
	p := &profileRun{c: c, std: std, label: args[0]}
	if err := p.refuseTerminal(outputPprof); err != nil {
		return exitUsage, err
	}
	prefixes, err := c.prefixMaps()
	if err != nil {
		return exitUsage, err
	}
	if err := c.checkWritten(args, std); err != nil {
		return exitUsage, err
	}
	defer p.close()
	if err := p.openInput(); err != nil {
		return exitIO, err
	}
	if err := p.chooseForm(given); err != nil {
		return exitUsage, err
	}
	if err := c.openMaps(); err != nil {
		return exitIO, err
	}
	if err := p.openOutputs(); err != nil {
		return exitIO, err
	}
	if p.session, err = c.session(std); err != nil {
		return exitIO, err
	}
	if err := p.open(args); err != nil {
		return exitIO, err
	}
	p.warn(false)
	var unresolved doctor.Sum
	symbolized, err := p.read(report.Options{
		Symbolizer: p.Symbolizer, Sysroot: c.sysroot, PrefixMap: prefixes, Basenames: c.basenames, NoPaths: c.noPaths, Wait: c.wait.of(true).Local,
		Diagnose:   func(message string) { p.diag.printf("%s: %s", p.label, wording.Line(message)) },
		Named:      func(n int64) { unresolved.Add(doctor.Counts{Asked: n}) },
		Unresolved: func(all []symbolize.Unresolved) { unresolved.Add(doctor.CountsOfReport(all)) },
	})
	if err != nil {
		return exitIO, err
	}
	defer symbolized.Close()
	if code, err := p.print(symbolized); err != nil {
		return code, err
	}
	p.status.set("")
	sum := unresolved.All()
	p.report(sum, false)
	if !c.explain {
		p.summarize(sum, false)
	}
	if c.strict && sum.Failed > 0 {
		return exitStrict, nil
	}
	return exitOK, nil
}

// A profileRun is a run of symfilter profile. Its methods are called in the order of their
// definitions.
type profileRun struct {
	*session
	c     *config
	std   standard
	label string // label of the input

	content io.Reader // the unpacked input
	head    []byte    // beginning of content
	writers []io.Writer
	closers []func() // called in reverse order
}

func (p *profileRun) close() {
	if p.session != nil {
		p.session.close()
	}
	for _, f := range slices.Backward(p.closers) {
		f()
	}
}

// refuseTerminal returns an error if a binary form would be written to a terminal.
func (p *profileRun) refuseTerminal(form string) error {
	if p.c.output == form && p.c.outputs[0].file == "" && isTerminal(p.std.out) {
		return usageError{errBinary}
	}
	return nil
}

// openInput opens the input, and unpacks it.
func (p *profileRun) openInput() error {
	in := p.std.in
	if u, ok := remote.URL(p.label); ok {
		answer, err := remote.Profile(u)
		if err != nil {
			return err
		}
		p.label = u.Redacted()
		p.closers = append(p.closers, func() { answer.Close() })
		p.content, p.head = peeked(answer)
	} else {
		if p.label == "-" {
			p.label = standardName
		} else {
			var err error
			if in, err = os.Open(p.label); err != nil {
				return errors.New(openError(p.label, err))
			}
			p.closers = append(p.closers, func() { in.Close() })
		}
		p.content, p.head = beginning(in)
	}
	if !isPacked(p.head) {
		return nil
	}
	plain, done, err := input.Plain(p.content, unpack.NewMemory(int64(p.c.maxMemory)/2))
	if err != nil {
		return fmt.Errorf("%s: %w", p.label, err)
	}
	p.closers = append(p.closers, done)
	p.content, p.head = peeked(plain)
	return nil
}

// chooseForm selects the form of the output. Without --output, a DHAT or Massif file is printed in
// its own format, with functions named. It fails if the output is binary and goes to a terminal, or
// if a flag has no effect.
func (p *profileRun) chooseForm(given bool) error {
	c := p.c
	if profile.IsTrace(p.head) || profile.IsPackedTrace(p.head) {
		if !given {
			c.output, c.outputs[0].form = outputOwn, outputOwn
		}
		if slices.ContainsFunc(c.outputs, func(o output) bool { return o.form == outputOwn }) {
			c.profile.names = symbolize.ValgrindNames
		}
	} else if err := p.refuseTerminal(outputOwn); err != nil { // the own form of pprof is binary
		return err
	}
	return c.profile.check(c.outputs, given)
}

// openOutputs opens the files of --output. They get their names once they are printed.
func (p *profileRun) openOutputs() error {
	for _, o := range p.c.outputs {
		if o.file == "" {
			p.writers = append(p.writers, p.std.text)
			continue
		}
		f, err := openOutput(o.file)
		if err != nil {
			return &outputError{o.file, err}
		}
		p.closers = append(p.closers, f.discard)
		p.writers = append(p.writers, f)
	}
	return nil
}

// read reads the profile, and names its addresses.
func (p *profileRun) read(o report.Options) (*profile.Profile, error) {
	biases, err := p.c.biases()
	if err != nil {
		return nil, err
	}
	o.Memory = report.NewBudget(int64(p.c.maxMemory)/2, access.Symbolizer(p.Symbolizer).(report.Ledger))
	read, err := profile.Read(p.content, profile.Options{
		Options: o,
		Places: func(program string) profile.Places {
			o := valgrind.Options{ReportOptions: symbolize.ReportOptions(o), Maps: biases}
			return access.Valgrind(&o).(interface{ NewPlaces(string) any }).NewPlaces(program).(profile.Places)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w%s", p.label, wording.Cause(err), otherFile(err, p.head, p.label))
	}
	return read, nil
}

// print prints the profile to each output, and returns the exit code.
func (p *profileRun) print(read *profile.Profile) (int, error) {
	view := profile.View{Label: p.label, Show: p.c.profile.show, Inclusive: p.c.profile.inclusive}
	for i, w := range p.writers {
		err := p.c.writeProfile(read, i, w, view, p.c.outputs[i].file == "" && isTerminal(p.std.out))
		_, unknown := errors.AsType[*profile.ShowError](err)
		switch {
		case err == nil || errors.Is(err, syscall.EPIPE):
			continue
		case unknown:
			return exitUsage, usageError{fmt.Errorf("--show: %s: %w", p.label, err)}
		case errors.Is(err, profile.ErrTooLarge):
			err = fmt.Errorf("%s: %w", p.label, err)
		}
		return exitIO, err
	}
	return exitOK, nil
}

// check returns an error if a flag has no effect on any output. given is set if the command line
// has --output.
func (f *profileFlags) check(outputs []output, given bool) error {
	for _, flag := range []struct {
		usedFlag
		of []string // forms
	}{
		{usedFlag{"--show", f.show != ""}, []string{outputText, outputFolded}},
		{usedFlag{"--inclusive", f.inclusive}, []string{outputText}},
	} {
		if slices.ContainsFunc(outputs, func(o output) bool { return slices.Contains(flag.of, o.form) }) {
			continue
		}
		first := outputs[0].flag()
		if !given {
			first += ", the default for this file"
		}
		if err := refuse(fmt.Sprintf("has no effect with %s: write --output=%s", first, strings.Join(flag.of, " or ")), flag.usedFlag); err != nil {
			return err
		}
	}
	return nil
}

// beginning returns a reader of in, and the first bytes of in. For a regular file, which can be
// read twice, the reader is the file itself.
func beginning(in *os.File) (content io.Reader, head []byte) {
	if info, err := in.Stat(); err == nil && info.Mode().IsRegular() {
		if at, err := in.Seek(0, io.SeekCurrent); err == nil {
			head = make([]byte, doctor.HeadSize)
			n, _ := in.ReadAt(head, at) // after an error, reading the file fails, too
			return in, head[:n]
		}
	}
	return peeked(in)
}

// peeked returns a reader of all bytes of in, and the first bytes.
func peeked(in io.Reader) (content io.Reader, head []byte) {
	b := bufio.NewReaderSize(in, doctor.HeadSize)
	head, _ = b.Peek(doctor.HeadSize) // reading all of in fails with the same error
	return b, head
}

// isPacked reports whether head begins a file compressed with zstd, xz or bzip2. Producers of
// profiles use only gzip, which package profile unpacks.
func isPacked(head []byte) bool {
	return slices.ContainsFunc([]string{"\x28\xb5\x2f\xfd", "\xfd7zXZ\x00", "BZh"}, func(magic string) bool { return bytes.HasPrefix(head, []byte(magic)) })
}

// writeProfile writes output i of c to w. Then it gives the output's file, if any, its name. On a
// terminal, control characters become visible.
func (c *config) writeProfile(p *profile.Profile, i int, w io.Writer, view profile.View, terminal bool) error {
	form := profileForms[slices.Index(profileOutputs(), c.outputs[i].form)].form
	if terminal {
		e := escape.NewWriter(w)
		return cmp.Or(p.Write(e, form, view), e.Close())
	}
	if err := p.Write(w, form, view); err != nil {
		return err
	}
	if f, ok := w.(*outputFile); ok {
		return f.end(true)
	}
	return nil
}

// otherFile returns the end of an error message for a file that is not a profile: the kind of the
// file. start is the beginning of the file. If err has another cause, or the kind is unknown, it
// returns "".
func otherFile(err error, start []byte, label string) string {
	if errors.Is(err, profile.ErrUnknown) {
		if other := doctor.NotProfile(start, label); other != "" {
			return "; it " + other
		}
	}
	return ""
}
