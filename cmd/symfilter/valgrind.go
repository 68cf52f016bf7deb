package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/internal/input"
	"github.com/symfilter/symfilter/internal/unpack"
	"github.com/symfilter/symfilter/internal/wording"
	"github.com/symfilter/symfilter/markup"
	"github.com/symfilter/symfilter/valgrind"
)

// openMaps opens the files of --map: a confined process cannot open the maps of another process.
func (c *config) openMaps() error {
	for _, name := range c.mapFiles {
		f, err := os.Open(name)
		if err != nil {
			return fmt.Errorf("--map %s: %w", name, wording.Cause(err))
		}
		c.maps = append(c.maps, f)
	}
	return nil
}

// biases returns the addresses in --map and --bias. It closes the files of openMaps.
func (c *config) biases() (maps []valgrind.Map, err error) {
	for _, s := range c.biasWords {
		i := max(strings.LastIndexByte(s, '='), 0)
		object := s[:i]
		bias, err := strconv.ParseUint(strings.TrimPrefix(s[i:], "="), 0, 64)
		if object == "" || err != nil {
			return nil, usageError{fmt.Errorf("--bias %q: write OBJECT=0x…, the difference between the addresses in the process and in the file", s)}
		}
		maps = append(maps, valgrind.Bias(object, bias))
	}
	for i, f := range c.maps {
		m, err := valgrind.ReadMap(f)
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("--map %s: %w", c.mapFiles[i], err)
		}
		maps = append(maps, m)
	}
	return maps, nil
}

func (r *reports) valgrind(at *arrival) io.WriteCloser {
	o := valgrind.Options{ReportOptions: r.options(at), Maps: r.maps}
	o.Ahead = lookAhead(at.in, r.packed, o)
	if r.found != nil {
		return access.Valgrind(&o).(findingsReader).NewFindings(r.found.Collection, at.label, r.found.own)
	}
	switch {
	case r.output == outputJSON:
		return valgrind.NewReport(at.batch.w, o)
	case r.output == outputValgrind && r.folder != nil:
		return valgrind.NewXMLDocuments(r.folder.begin, o)
	case r.output == outputValgrind:
		return at.harmless(func(w io.Writer) io.WriteCloser { return valgrind.NewXML(w, o) })
	}
	if r.c.style == styleValgrind && (r.output == "" || r.output == outputText) {
		return at.harmless(func(w io.Writer) io.WriteCloser { return valgrind.NewText(w, o) })
	}
	return r.asMarkup(at, func(dst markup.Sink) io.WriteCloser { return valgrind.NewMarkup(dst, o) })
}

// lookAhead reads a report in advance, and returns its facts about objects. It returns nil for an
// input that is not a regular file, and after an error, which the translator reports itself.
func lookAhead(in *os.File, memory *unpack.Memory, o valgrind.Options) *valgrind.Ahead {
	info, err := in.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	plain, done, err := input.Plain(io.NewSectionReader(in, 0, info.Size()), memory)
	if err != nil {
		return nil
	}
	defer done()
	ahead, err := valgrind.ReadAhead(plain, o)
	if err != nil {
		return nil
	}
	return ahead
}
