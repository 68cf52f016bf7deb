package asis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/symfilter/symfilter/internal/lines"
	"github.com/symfilter/symfilter/symbolize"
)

const (
	exitOK     = 0
	exitFailed = 1
)

// A Session answers questions. One goroutine uses it.
type Session struct {
	*Line
	// Symbolizer needs the options that Line.Rules sets, and finders that find files by path.
	Symbolizer *symbolize.Symbolizer
	Context    context.Context // ends all waiting for debug files
	Out, Err   io.Writer

	printer  printer
	frames   []symbolize.Frame
	usable   map[string]bool // by path of a module that was asked about; false: its error was reported
	noFrames bool            // it was reported that FRAME is not answered
}

// Run answers the questions of the command line, or else each line of in, and returns the exit
// code. It stops if an answer cannot be written.
func (s *Session) Run(in io.Reader) int {
	s.printer = printer{Line: s.Line}
	switch s.program.family {
	case ofBinutils:
		return s.runBinutils(in)
	case ofElfutils:
		return s.runElfutils(in)
	}
	if s.hasObject {
		if err := s.check(s.object); err != nil {
			return s.noObject(err)
		}
	}
	if len(s.Questions) == 0 {
		return s.interactive(in, s.answer)
	}
	list := s.style == styleJSON
	whole := list && s.pretty // the whole list is indented together
	for i, line := range s.Questions {
		if list {
			s.printer.out = append(s.printer.out, "[,"[min(i, 1)])
		}
		s.answer(cut(line))
		if len(s.printer.out) >= chunk && !whole && s.flush() != nil {
			return exitFailed
		}
	}
	if list {
		s.printer.out = append(s.printer.out, ']')
		s.printer.indent(0)
		s.printer.out = append(s.printer.out, '\n')
	}
	if s.flush() != nil {
		return exitFailed
	}
	return exitOK
}

// noObject reports an error about the file of --obj.
func (s *Session) noObject(err error) int {
	if s.style != styleJSON {
		s.complain(s.object, err)
		return exitFailed
	}
	s.printer.jsonError(&question{hasAddr: true}, s.object, err.Error())
	s.end(0)
	s.flush()
	return exitFailed
}

// interactive answers the lines of in. It writes the answers before it may wait for the next line.
func (s *Session) interactive(in io.Reader, answer func(line string)) int {
	asker := lines.NewAsker(in, maxQuestion)
	for line, ok := asker.Next(); ok; line, ok = asker.Next() {
		start := len(s.printer.out)
		answer(cut(string(line)))
		s.end(start)
		if (asker.Waits() || len(s.printer.out) >= chunk) && s.flush() != nil {
			return exitFailed
		}
	}
	return exitOK
}

// cut removes line ends, and everything from a NUL on: LLVM's line is a C string.
func cut(line string) string {
	line, _, _ = strings.Cut(line, "\x00")
	return strings.ReplaceAll(strings.ReplaceAll(line, "\n", ""), "\r", "")
}

// end ends a JSON answer, which begins at out[start].
func (s *Session) end(start int) {
	if s.style == styleJSON && len(s.printer.out) > 0 {
		s.printer.indent(start)
		s.printer.out = append(s.printer.out, '\n')
	}
}

func (s *Session) flush() error {
	_, err := s.Out.Write(s.printer.out)
	s.printer.out = s.printer.out[:0]
	return err
}

func (s *Session) answer(line string) {
	if line == "" { // a client may check that the process responds
		s.code(&question{}, "", []place{{}}, false)
		return
	}
	q, err := s.question(line)
	if err != nil {
		s.complain(line, err)
		s.code(&question{}, q.module, []place{{}}, false)
		return
	}
	module := q.module
	if module == "" {
		module = strings.ToUpper(q.id.String())
	}
	l, usable, err := s.location(&q)
	switch {
	case err != nil:
	case q.kind == dataKind:
		err = s.askData(&q, module, l, usable)
	case q.kind == frameKind:
		s.askFrame(&q, module)
	case q.symbol != "":
		err = s.askSymbol(&q, module, l, usable)
	default:
		err = s.askCode(&q, module, l, usable)
	}
	if err != nil {
		s.refuse(&q, module, err)
	}
}

// location returns the location in a question. usable is false if the module's error was reported
// before; the answer is then empty.
func (s *Session) location(q *question) (l symbolize.Location, usable bool, err error) {
	l.Addr = q.addr - s.adjust
	if q.module == "" {
		l.ID = q.id
		return l, true, nil
	}
	usable, known := s.usable[q.module]
	if known && !usable {
		return l, false, nil
	}
	if !known {
		if err := s.check(q.module); err != nil {
			return l, false, err
		}
		s.remember(q.module, true)
	}
	l.Name, err = filepath.Abs(q.module)
	return l, err == nil, err
}

// check returns LLVM's error if the file at path cannot be used.
func (s *Session) check(path string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err == nil {
		defer f.Close()
		var info fs.FileInfo
		if info, err = f.Stat(); err == nil && info.IsDir() {
			err = syscall.EISDIR
		}
		var magic [8]byte
		if err == nil && info.Mode().IsRegular() {
			switch f.ReadAt(magic[:], 0); {
			case string(magic[:]) == "!<arch>\n", string(magic[:]) == "!<thin>\n":
				err = errArchive
			case !strings.HasPrefix(string(magic[:]), "\x7fELF") && !isPacked(path):
				err = errNoObject
			}
		} else if err == nil {
			err = errNoObject
		}
	}
	if err == nil {
		return nil
	}
	s.remember(path, false)
	if no, ok := errors.AsType[syscall.Errno](err); ok {
		text := no.Error()
		return mistake(strings.ToUpper(text[:1]) + text[1:])
	}
	return err
}

// isPacked reports whether path looks like a compressed kernel module, such as a.ko.xz.
func isPacked(path string) bool { return strings.Contains(filepath.Base(path), ".ko.") }

// LLVM's errors for a file that it does not recognize, and for an archive, whose members it does
// not open.
const (
	errNoObject mistake = "The file was not recognized as a valid object file"
	errArchive  mistake = "No object file for requested architecture"
)

// remember caches whether the module at path can be used.
func (s *Session) remember(path string, usable bool) {
	if s.usable == nil || len(s.usable) >= maxModules {
		s.usable = make(map[string]bool)
	}
	s.usable[path] = usable
}

func (s *Session) askCode(q *question, module string, l symbolize.Location, usable bool) error {
	if !usable {
		none := []place{{}}
		if s.style == styleJSON && s.inlines {
			none = nil
		}
		s.code(q, module, none, s.inlines)
		return nil
	}
	if err := s.ask(q, l); err != nil {
		return err
	}
	if s.inlines {
		s.code(q, module, s.places(s.frames), true)
	} else {
		s.code(q, module, []place{s.single(s.frames, s.style == styleGNU)}, false)
	}
	return nil
}

// ask sets s.frames to the frames at l.
func (s *Session) ask(q *question, l symbolize.Location) (err error) {
	s.frames, err = s.Symbolizer.Ask(s.Context, s.frames[:0], l, symbolize.Policy{})
	return s.cause(q, err)
}

// askSymbol prints the source line of each symbol called q.symbol. If the question has an offset
// within the symbol, the line is the one at the offset. Symbols without a source file are left out.
func (s *Session) askSymbol(q *question, module string, l symbolize.Location, usable bool) error {
	var all []place
	if usable {
		found, err := s.Symbolizer.Named(s.Context, l, q.symbol)
		if err = s.cause(q, err); err != nil {
			return err
		}
		for _, sym := range found {
			if l.Addr = sym.Addr; q.addr < sym.Size {
				l.Addr += q.addr
			}
			if err := s.ask(q, l); err != nil {
				return err
			}
			if at := s.single(s.frames, false); at.file != "" {
				all = append(all, at)
			}
		}
	}
	if s.style == styleJSON {
		s.printer.jsonCode(q, module, "Loc", all)
		return nil
	}
	if len(all) == 0 {
		all = []place{{}}
	}
	s.printer.code(q, all, false)
	return nil
}

func (s *Session) askData(q *question, module string, l symbolize.Location, usable bool) error {
	var d datum
	if usable {
		v, err := s.Symbolizer.AskData(s.Context, l, symbolize.Policy{})
		if err = s.cause(q, err); err != nil {
			return err
		}
		d = s.datum(l.Addr, &v)
	}
	if s.style == styleJSON {
		s.printer.jsonData(q, module, &d)
	} else {
		s.printer.data(q, &d)
	}
	return nil
}

// askFrame answers a question about local variables as if the function had none. The first time, it
// warns that symfilter does not read local variables.
func (s *Session) askFrame(q *question, module string) {
	if !s.noFrames {
		s.noFrames = true
		fmt.Fprintf(s.Err, "%s: FRAME: symfilter does not read local variables, and answers as if functions had none\n", s.tool)
	}
	if s.style == styleJSON {
		s.printer.jsonCode(q, module, "Frame", nil)
		return
	}
	s.printer.noLocals(q)
}

// cause returns the error that LLVM reports for err, or nil if LLVM reports none. If a module
// cannot be read, later answers about it are empty.
func (s *Session) cause(q *question, err error) error {
	var fault *symbolize.FaultError
	switch {
	case err == nil, errors.Is(err, symbolize.ErrNoSymbol):
		return nil
	case q.module == "":
		return mistake("could not find build ID")
	case errors.As(err, &fault):
		err = fault.Err
	}
	s.remember(q.module, false)
	return err
}

func (s *Session) code(q *question, module string, all []place, chain bool) {
	if s.style == styleJSON {
		s.printer.jsonCode(q, module, "Symbol", all)
		return
	}
	s.printer.code(q, all, chain)
}

// refuse prints the error and, in text styles, an empty answer.
func (s *Session) refuse(q *question, module string, err error) {
	if s.style == styleJSON {
		s.printer.jsonError(q, module, err.Error())
		return
	}
	s.complain(module, err)
	switch q.kind {
	case dataKind:
		s.printer.data(q, &datum{})
	case frameKind:
		s.printer.noLocals(q)
	default:
		s.printer.code(q, []place{{}}, false)
	}
}

func (s *Session) complain(about string, err error) {
	if about != "" {
		about = "'" + about + "': "
	}
	fmt.Fprintf(s.Err, "%s: error: %s\n", printable(s.tool), printable(about+err.Error()))
}
