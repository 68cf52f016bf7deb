package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/symfilter/symfilter/internal/newfile"
	"github.com/symfilter/symfilter/internal/wording"
)

// Values of --output.
const (
	outputText   = "text"
	outputJSON   = "json"
	outputHTML   = "html"
	outputMarkup = "markup"

	outputCallgrind = "callgrind" // the input's own format, with names
	outputRTrace    = "rtrace"
	outputValgrind  = "valgrind"

	outputCodeQuality = "codequality" // findings of all inputs
	outputSARIF       = "sarif"
	outputJUnit       = "junit"

	outputSuppressions = "suppressions"

	outputNone = "none" // findings for a gate; not a value of --output
)

// outputs returns the values of --output.
func outputs() []string {
	return []string{outputText, outputJSON, outputHTML, outputMarkup, outputCallgrind, outputRTrace, outputValgrind, outputSARIF, outputJUnit, outputCodeQuality, outputSuppressions, outputPprof, outputFolded, outputSpeedscope}
}

// An output is the form and the destination of results.
type output struct {
	form string
	file string // empty: standard output
}

// flag returns the flag that selects the output.
func (o output) flag() string {
	if o.file == "" {
		return "--output=" + o.form
	}
	return "--output=" + o.form + ":" + o.file
}

// An outputList is the value of --output: FORM, or FORM:FILE.
type outputList []output

func (l *outputList) Set(s string) error { return l.set(s, outputs()) }

// set adds a value, whose form must be one of words.
func (l *outputList) set(s string, words []string) error {
	form, file, named := strings.Cut(s, ":")
	if !slices.Contains(words, form) {
		last := len(words) - 1
		return fmt.Errorf("not %s or %s", strings.Join(words[:last], ", "), words[last])
	}
	if named && file == "" {
		return errors.New("no file after the colon")
	}
	if file == "-" {
		file = ""
	}
	if strings.HasSuffix(file, "/") && form != outputValgrind {
		return fmt.Errorf("%s is a folder: only %s writes to a folder", file, outputValgrind)
	}
	*l = append(*l, output{form, file})
	return nil
}

// pickOutput sets c.output to the form of the main output. Messages and counts refer to the main
// output: the one on standard output, or the first output if all go to files. Without --output, the
// form is text.
func (c *config) pickOutput() error {
	if len(c.outputs) == 0 {
		c.outputs = outputList{{form: outputText}}
	}
	main := -1
	for i, o := range c.outputs {
		if o.file != "" {
			continue
		}
		if main >= 0 {
			return usageError{fmt.Errorf("%s and %s both go to standard output: write %s:FILE for one of them", c.outputs[main].flag(), o.flag(), o.flag())}
		}
		main = i
	}
	if main > 0 { // the main output is the first pipeline
		o := c.outputs[main]
		c.outputs = slices.Insert(slices.Delete(c.outputs, main, main+1), 0, o)
	}
	c.output = c.outputs[0].form
	return nil
}

// An outputFile is the file of an output. It appears under its path only when it is complete. An
// earlier file at the path is removed at the start, so that no process reads old results.
type outputFile struct {
	*os.File
	path  string
	root  *os.Root
	base  string        // name below root
	whole *newfile.File // nil: the path is a pipe or a device, and is written directly
}

// openOutput opens the file of an output, and removes an earlier regular file of that name. A pipe
// or a device is written directly.
func openOutput(path string) (*outputFile, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return nil, err
		}
		return &outputFile{File: f, path: path}, nil
	}
	mode := defaultMode()
	place := path
	if err == nil {
		mode = info.Mode().Perm()
		if place, err = filepath.EvalSymlinks(path); err != nil {
			return nil, err
		}
	}
	root, err := os.OpenRoot(filepath.Dir(place))
	if err != nil {
		return nil, err
	}
	o := &outputFile{path: path, root: root, base: filepath.Base(place)}
	if o.whole, err = newfile.Create(root, "."+o.base+"."); err == nil {
		o.File = o.whole.File
		err = o.whole.Chmod(mode)
	}
	if err == nil && info != nil {
		err = root.Remove(o.base)
	}
	if err != nil {
		o.discard()
		return nil, err
	}
	return o, nil
}

// Write writes p. Its error names the file.
func (o *outputFile) Write(p []byte) (int, error) {
	n, err := o.File.Write(p)
	if err != nil {
		err = &outputError{o.path, err}
	}
	return n, err
}

// end closes the file. It gives a complete file its name, and discards an incomplete one. A nil
// file is standard output, which stays open.
func (o *outputFile) end(complete bool) error {
	if o == nil {
		return nil
	}
	if !complete || o.whole == nil {
		o.discard()
		return nil
	}
	defer o.discard()
	if err := o.whole.Publish(o.base); err != nil {
		return &outputError{o.path, err}
	}
	return nil
}

// discard closes the file. It also removes the file, unless end has already put it at its path.
func (o *outputFile) discard() {
	if o.whole == nil {
		if o.File != nil {
			o.File.Close()
		}
	} else {
		o.whole.Discard()
	}
	if o.root != nil {
		o.root.Close()
	}
}

type outputError struct {
	path string
	err  error
}

func (e *outputError) Error() string {
	return fmt.Sprintf("write %s: %v", e.path, wording.Cause(e.err))
}
func (e *outputError) Unwrap() error { return e.err }
