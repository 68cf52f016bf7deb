package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/doctor"
	"github.com/symfilter/symfilter/internal/wording"
	"github.com/symfilter/symfilter/symbolize"
)

// mostOfLog bounds the bytes of a log that are compared with builds: they are filtered once for
// each build.
const mostOfLog = 1 << 20

const mostModules = 16

// whichBuild prints the files below the folder args[0] that may have written the log of --which.
// The exit code is 1 unless exactly one file fits.
func (c *config) whichBuild(args []string, std standard) (int, error) {
	if len(args) != 1 {
		return exitUsage, usageError{errors.New("--which LOG needs a folder of builds that may have written LOG")}
	}
	if info, err := os.Stat(args[0]); err != nil || !info.IsDir() {
		return exitUsage, usageError{fmt.Errorf("--which: %q is not a folder", args[0])}
	}
	c.examining, c.quiet = true, true // only the builds are printed
	s, err := c.session(std)
	if err != nil {
		return exitUsage, err
	}
	defer s.close()
	c.confine(s.diag, args, false)
	log, err := headOf(c.which, mostOfLog)
	if err != nil {
		return exitIO, fmt.Errorf("open %s: %w", c.which, wording.Cause(err))
	}
	builds := doctor.BuildsBelow(args[0])
	modules, addresses := c.compare(log, nil, nil).Unresolved()
	for i := range builds {
		b := &builds[i]
		file, err := filepath.Abs(b.Path)
		if err != nil {
			return exitIO, err
		}
		images := []filter.Image{{Path: file}}
		for _, u := range modules[:min(len(modules), mostModules)] {
			if u.ID.IsZero() && u.Name != "" && path.Base(u.Name) == path.Base(b.Path) {
				images = append(images, filter.Image{Name: u.Name, Path: file})
			}
		}
		c.compare(log, images, func(_ string, addr uint64, proof string) { b.Locate(addr, proof) })
	}
	if doctor.WriteBuilds(std.text, c.which, builds, addresses) {
		return exitOK, nil
	}
	return exitIO, nil
}

func headOf(path string, most int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, most))
}

// compare filters log without output, and returns the filter with its counts. Only images can be
// files of the log's modules. For each frame whose address is in an image, compare calls located
// unless it is nil.
func (c *config) compare(log []byte, images []filter.Image, located func(path string, addr uint64, proof string)) *filter.Filter {
	o := filter.Options{
		Symbolizer: symbolize.New(symbolize.Options{}),
		Context:    context.Background(),
		Dialects:   filter.Dialects{NoPaths: true, Images: images, Located: located, Whole: true},
	}
	at := &arrival{label: c.which, batch: &batch{w: io.Discard}, diagnose: func(string) {}, options: o}
	at.filter = filter.New(at.batch, o)
	r := newReports(c, o.Symbolizer, nil, nil)
	r.output = outputText
	e := r.engine(c.inputFormat(), at)
	io.Copy(e, bytes.NewReader(log)) // after an error, only the part before it is compared
	e.Close()
	o.Symbolizer.Close()
	return at.filter
}
