package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/symfilter/symfilter/internal/address"
	"github.com/symfilter/symfilter/internal/doctor"
	"github.com/symfilter/symfilter/internal/findings"
	"github.com/symfilter/symfilter/internal/lines"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/internal/wording"
)

const (
	// longest line of standard input, in bytes; mangled C++ names can take several KiB
	maxAddrLine = 64 << 10
	addrChunk   = 64 << 10 // bytes of answers that are buffered before a write
)

// runAddr prints the functions and lines at addresses of files. The addresses are words of the
// command line or, without any, lines of standard input.
func runAddr(c *config, args []string, std standard) (int, error) {
	prefixes, err := c.prefixMaps()
	if err != nil {
		return exitUsage, err
	}
	if len(args) == 0 && isTerminal(std.in) {
		return exitUsage, usageError{errors.New("addr: write symfilter addr [flags] [FILE|ID] ADDRESS..., or give addresses on standard input; to read a log named addr, write ./addr")}
	}
	asked, code, err := c.askedAddresses(args)
	if err != nil {
		return code, err
	}
	s, err := c.session(std)
	if err != nil {
		return exitIO, err
	}
	defer s.close()
	if err := s.open(asked.paths()); err != nil {
		return exitIO, err
	}
	s.warn(false)
	a := addresses{
		session: s, reader: &asked.reader,
		shown: report.Options{PrefixMap: prefixes, Basenames: c.basenames},
		json:  c.output == outputJSON, to: std.text,
	}
	defer a.forget()
	if asked.file != nil {
		if a.file, err = a.examined(*asked.file); err != nil {
			return exitIO, err
		}
		defer a.file.cancel()
	}
	if a.own, err = findings.NewOwn(c.frames.rules); err != nil {
		return exitUsage, err
	}
	if a.sources, err = c.sources(s.Symbolizer, s.servers, prefixes, false, s.diag); err != nil {
		return exitUsage, err
	}
	defer a.sources.close()
	terminal := isTerminal(std.out)
	a.links = c.source.hyperlinks(terminal, c.color.mode(terminal, os.Getenv), os.Getenv)
	code = exitOK
	if len(asked.words) > 0 {
		a.all(asked)
	} else {
		code = a.interactive(std)
	}
	if a.unwritten {
		return exitIO, nil // run reports the error
	}
	return a.end(code), nil
}

type askedAddress struct {
	text string
	word address.Word
}

// askedAddresses holds the arguments of symfilter addr.
type askedAddresses struct {
	reader address.Reader
	file   *doctor.Subject // nil: each word names its file
	words  []askedAddress  // empty: addresses are read from standard input
}

// askedAddresses reads the arguments of symfilter addr. If err is not nil, code is the exit code.
func (c *config) askedAddresses(args []string) (asked *askedAddresses, code int, err error) {
	asked = &askedAddresses{reader: address.Reader{InFile: c.offsets}}
	if len(args) == 0 {
		return asked, exitOK, nil
	}
	of, err := doctor.SubjectOf(args[0])
	_, noFile := errors.AsType[doctor.WordError](err)
	if _, notPair := asked.reader.Read(args[0]); !noFile || notPair != nil {
		switch {
		case noFile:
			return nil, exitUsage, usageError{err}
		case err != nil:
			return nil, exitIO, err
		}
		asked.file, args = &of, args[1:]
		asked.reader.IsModule = isOtherFile
	}
	if len(args) == 1 && args[0] == "-" {
		args = nil
	}
	for _, text := range args {
		word, err := asked.reader.Read(text)
		if err != nil {
			return nil, exitUsage, usageError{err}
		}
		asked.words = append(asked.words, askedAddress{text, word})
	}
	return asked, exitOK, nil
}

func subjectOf(word string) (doctor.Subject, error) {
	s, err := doctor.SubjectOf(word)
	if mistake, ok := errors.AsType[doctor.WordError](err); ok {
		err = usageError{mistake}
	}
	return s, err
}

// isOtherFile reports whether word, the beginning of an argument, names another file: it has a
// slash, and the file exists. Otherwise the slash is part of a Go symbol.
func isOtherFile(word string) bool {
	if !strings.ContainsRune(word, os.PathSeparator) {
		return false
	}
	_, err := os.Stat(word)
	return err == nil
}

func (asked *askedAddresses) paths() (all []string) {
	if asked.file != nil {
		all = append(all, asked.file.Path)
	}
	for i := range asked.words {
		if module := asked.words[i].word.Module; module != "" {
			all = append(all, module)
		}
	}
	return all
}

func (a *addresses) all(asked *askedAddresses) {
	for i := range asked.words {
		a.answer(asked.words[i].text, asked.words[i].word)
		if !a.flush() {
			return
		}
	}
}

// interactive answers each line of standard input before it waits for the next one.
func (a *addresses) interactive(std standard) int {
	if isTerminal(std.in) && isTerminal(std.err) {
		a.diag.printf("reading addresses from the terminal; end with Ctrl-D; symfilter addr --help prints help")
	}
	asker := lines.NewAsker(std.in, maxAddrLine)
	for line, ok := asker.Next(); ok; line, ok = asker.Next() {
		text, _ := lines.CutEnd(line)
		a.line(string(text))
		if (asker.Waits() || len(a.out) >= addrChunk) && !a.flush() {
			return exitIO
		}
	}
	if err := asker.Err(); err != nil {
		a.diag.line("%s", readError(standardName, err))
		return exitIO
	}
	return exitOK
}

func (a *addresses) line(text string) {
	a.lines++
	word, err := a.reader.Read(text)
	if err == nil {
		a.answer(text, word)
		return
	}
	a.noAddress.note(fmt.Sprintf("line %d: %v", a.lines, err))
	a.print(&located{word: text, err: err})
}

// flush writes the answers so far. It returns false if the output cannot be written.
func (a *addresses) flush() bool {
	_, err := a.to.Write(a.out)
	a.out, a.unwritten = a.out[:0], a.unwritten || err != nil
	return !a.unwritten
}

// end reports the addresses without a name, and returns the exit code of the run. code is the exit
// code so far.
func (a *addresses) end(code int) int {
	a.status.set("")
	if n := a.noAddress.n; n > 0 {
		a.diag.sum("%s not looked up; the first is %s", wording.Count(n, "line of standard input was", "lines of standard input were"), a.noAddress.first)
	}
	if n := a.noFile.n; n > 0 {
		a.diag.sum("%s not looked up, because the file is missing or cannot be used; the first is %s", wording.Count(n, "address was", "addresses were"), a.noFile.first)
	}
	a.unresolved.Add(a.outside.All())
	sum := a.unresolved.All()
	a.c.explain = a.c.explain || !a.c.quiet
	a.report(sum, false)
	if code == exitOK && a.c.strict && sum.Failed+a.noAddress.n+a.noFile.n > 0 {
		return exitStrict
	}
	return code
}
