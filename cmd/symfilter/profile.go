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

	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/internal/input"
	"github.com/symfilter/symfilter/internal/profile"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/symbolize"
	"github.com/symfilter/symfilter/valgrind"
)

// profileFlags are the flags of symfilter profile.
type profileFlags struct {
	show      string
	inclusive bool
	names     symbolize.Names // that the symbolizer gives
}

// profileForms are the forms that symfilter profile prints.
var profileForms = [...]struct {
	name string
	form profile.Output
}{{outputText, profile.Text}, {outputPprof, profile.Pprof}, {outputFolded, profile.Folded}, {outputSpeedscope, profile.Speedscope}, {outputOwn, profile.Own}}

// outputOwn is the format of the input.
const outputOwn = "own"

func profileOutputs() (names []string) {
	for _, f := range profileForms {
		names = append(names, f.name)
	}
	return names
}

// profileOutput is the value of --output of symfilter profile.
type profileOutput struct{ list *outputList }

func (o profileOutput) Set(s string) error { return o.list.set(s, profileOutputs()) }

// runProfile prints a profile with names.
func runProfile(c *config, args []string, std standard) (int, error) {
	given := len(c.outputs) > 0
	if err := c.pickOutput(); err != nil {
		return exitUsage, err
	}
	if c.output == outputPprof && c.outputs[0].file == "" && isTerminal(std.out) {
		return exitUsage, usageError{errBinary}
	}
	prefixes, err := c.prefixMaps()
	if err != nil {
		return exitUsage, err
	}
	if err := c.checkWritten(args, std); err != nil {
		return exitUsage, err
	}
	label := args[0]
	in := std.in
	if label == "-" {
		label = standardName
	} else {
		if in, err = os.Open(label); err != nil {
			return exitIO, errors.New(openError(label, err))
		}
		defer in.Close()
	}
	content, head := beginning(in)
	if isPacked(head) {
		plain, done, err := input.Plain(content, input.NewMemory(int64(c.maxMemory)/2))
		if err != nil {
			return exitIO, fmt.Errorf("%s: %w", label, err)
		}
		defer done()
		content, head = peeked(plain)
	}
	if profile.IsTrace(head) || profile.IsPackedTrace(head) {
		if !given {
			c.output, c.outputs[0].form = outputOwn, outputOwn
		}
		if slices.ContainsFunc(c.outputs, func(o output) bool { return o.form == outputOwn }) {
			c.profile.names = symbolize.ValgrindNames
		}
	} else if c.output == outputOwn && c.outputs[0].file == "" && isTerminal(std.out) { // that is pprof's
		return exitUsage, usageError{errBinary}
	}
	if err := c.profile.check(c.outputs, given); err != nil {
		return exitUsage, err
	}
	if err := c.openMaps(); err != nil {
		return exitIO, err
	}
	writers := make([]io.Writer, len(c.outputs))
	for i, o := range c.outputs {
		writers[i] = std.text
		if o.file == "" {
			continue
		}
		f, err := openOutput(o.file)
		if err != nil {
			return exitIO, &outputError{o.file, err}
		}
		defer f.discard()
		writers[i] = f
	}
	run, err := c.session(std)
	if err != nil {
		return exitIO, err
	}
	defer run.close()
	if err := run.open(args); err != nil {
		return exitIO, err
	}
	c.warnOfUseless(run.diag, false)
	s := &stream{diag: run.diag, stop: &stopper{}} // a signal ends the process
	wait := c.wait.of(true).Local
	o := report.Options{
		Symbolizer: run.Symbolizer, Sysroot: c.sysroot, PrefixMap: prefixes, Basenames: c.basenames, NoPaths: c.noPaths, Wait: wait,
		Diagnose:   func(message string) { run.diag.printf("%s: %s", label, oneLine(message)) },
		Named:      func(n int64) { s.unresolved.add(counts{asked: n}) },
		Unresolved: func(all []report.Unresolved) { s.unresolved.add(unresolvedCounts(all)) },
	}
	biases, err := c.biases()
	if err != nil {
		return exitIO, err
	}
	p, err := profile.Read(content, profile.Options{
		Options: o,
		Budget:  report.NewBudget(int64(c.maxMemory)/2, run.Symbolizer),
		Places: func(program string) profile.Places {
			return valgrind.NewPlaces(program, valgrind.Options{Options: o, Maps: biases})
		},
	})
	if err != nil {
		return exitIO, fmt.Errorf("%s: %w%s", label, bare(err), otherFile(err, head, label))
	}
	defer p.Close()
	view := profile.View{Label: label, Show: c.profile.show, Inclusive: c.profile.inclusive}
	for i, w := range writers {
		if err := c.writeProfile(p, i, w, view, c.outputs[i].file == "" && isTerminal(std.out)); err != nil {
			if errors.Is(err, syscall.EPIPE) {
				continue
			}
			if _, ok := errors.AsType[*profile.ShowError](err); ok {
				return exitUsage, usageError{fmt.Errorf("--show: %s: %w", label, err)}
			}
			if errors.Is(err, profile.ErrTooLarge) {
				err = fmt.Errorf("%s: %w", label, err)
			}
			return exitIO, err
		}
	}
	run.status.set("")
	s.report(c, run.Symbolizer)
	if c.strict && s.unresolved.all().failed > 0 {
		return exitStrict, nil
	}
	return exitOK, nil
}

// check returns an error if no output depends on a flag. given is set if the command line has outputs.
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

// beginning returns a reader of in, and the bytes that in begins with. A regular file is returned
// itself, since it may be read twice.
func beginning(in *os.File) (content io.Reader, head []byte) {
	if info, err := in.Stat(); err == nil && info.Mode().IsRegular() {
		if at, err := in.Seek(0, io.SeekCurrent); err == nil {
			head = make([]byte, headSize)
			n, _ := in.ReadAt(head, at) // a file that cannot be read fails when all of it is read
			return in, head[:n]
		}
	}
	return peeked(in)
}

// peeked returns a reader of the same bytes as in, and the bytes that in begins with.
func peeked(in io.Reader) (content io.Reader, head []byte) {
	b := bufio.NewReaderSize(in, headSize)
	head, _ = b.Peek(headSize) // its error is that of all of in
	return b, head
}

// isPacked reports whether a file that begins with head is compressed in a way that profiles are
// not by their producers: by other than gzip, which package profile unpacks.
func isPacked(head []byte) bool {
	return slices.ContainsFunc([]string{"\x28\xb5\x2f\xfd", "\xfd7zXZ\x00", "BZh"}, func(magic string) bool { return bytes.HasPrefix(head, []byte(magic)) })
}

// writeProfile writes output i of c. On a terminal, control characters are made visible.
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

// otherFile returns what a file is that begins with start and is not a profile, as the end of the
// message err; empty if it is not known.
func otherFile(err error, start []byte, label string) string {
	if !errors.Is(err, profile.ErrUnknown) {
		return ""
	}
	kind := kindOf(start)
	switch begins := input.Recognise(start); {
	case kind != nil:
		return "; it is " + kind.name
	case begins == input.Valgrind, begins == input.Callgrind, begins == input.RTrace:
		return "; it begins like " + formatNames[begins] + ": write symfilter " + begins.String() + " " + label
	}
	return ""
}

// unresolvedCounts returns the counts of the addresses of a report that have no name.
func unresolvedCounts(all []report.Unresolved) (c counts) {
	for _, u := range all {
		c.failed += u.Frames
		if u.Name != "" {
			c.modules = append(c.modules, u)
		}
	}
	c.asked = c.failed
	return c
}
