package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/cli"
	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/doctor"
	"github.com/symfilter/symfilter/internal/wording"
)

type dialectFlags struct {
	names   dialectList
	images  []string // values of --image
	keepRaw bool
	code    bool // disassemble the code that Linux lists

	forceImages bool
}

// A dialectList is the value of --dialects: none, or a list of auto and names of dialects. The zero
// value is auto.
type dialectList struct {
	none bool
	only []string // nil: all
}

// Set parses a value, which replaces an earlier one.
func (l *dialectList) Set(s string) error {
	*l = dialectList{}
	switch s {
	case "auto":
		return nil
	case "none":
		l.none = true
		return nil
	}
	for name := range strings.SplitSeq(s, ",") {
		if name == "auto" { // all dialects but those on demand, which the list may also name
			for _, d := range dialect.All() {
				if !d.OnDemand {
					l.only = append(l.only, d.Name)
				}
			}
			continue
		}
		if !slices.ContainsFunc(dialect.All(), func(d *dialect.Dialect) bool { return d.Name == name }) {
			return fmt.Errorf("%q is not a dialect: symfilter help dialects lists them", name)
		}
		l.only = append(l.only, name)
	}
	return nil
}

// dialects returns the options for raw backtraces. regular is set for a regular file that is not
// being written.
func (c *config) dialects(regular bool) (d filter.Dialects, err error) {
	d = filter.Dialects{NoPaths: c.noPaths, Sysroot: c.sysroot, None: c.backtraces.names.none, Only: c.backtraces.names.only,
		KeepRaw: c.backtraces.keepRaw, Code: c.backtraces.code, ForceImages: c.backtraces.forceImages, Whole: regular}
	d.WorkingFolder, _ = os.Getwd() // without a working folder, no relative path is opened
	files, folders := c.imageWords()
	d.Candidates = absolute(slices.Concat(folders, c.symbolPaths, c.objects))
	d.Folders = append(d.Candidates[:len(d.Candidates):len(d.Candidates)], absolute(filepath.SplitList(os.Getenv("PATH")))...)
	for _, folder := range folders {
		if err := doctor.CheckImage(folder); err != nil {
			return d, usageError{fmt.Errorf("--image %q: %w", folder, wording.Cause(err))}
		}
	}
	for _, word := range files {
		image, err := parseImage(word)
		if err != nil {
			return d, err
		}
		d.Images = append(d.Images, image)
	}
	return d, nil
}

// imageWords returns the files and the folders in --image.
func (c *config) imageWords() (files, folders []string) {
	for _, word := range c.backtraces.images {
		if info, err := os.Stat(word); err == nil && info.IsDir() {
			folders = append(folders, word)
		} else {
			files = append(files, word)
		}
	}
	return files, folders
}

// absolute returns folders as absolute paths, without empty ones.
func absolute(folders []string) (all []string) {
	for _, folder := range folders {
		if abs, err := filepath.Abs(folder); err == nil && folder != "" {
			all = append(all, abs)
		}
	}
	return all
}

// parseImage parses a value of --image, [NAME=]FILE[@BASE].
func parseImage(word string) (m filter.Image, err error) {
	m.Path = word
	// in the name of an existing file, "=" and "@" have no meaning
	if _, err := os.Stat(word); err != nil {
		if at := strings.LastIndex(m.Path, "@0x"); at > 0 {
			base, err := strconv.ParseUint(m.Path[at+3:], 16, 64)
			if err != nil {
				return m, usageError{fmt.Errorf("--image %q: %q is not an address; write FILE@0x7f3100000000", word, m.Path[at+1:])}
			}
			m.Path, m.Base, m.HasBase = m.Path[:at], base, true
		}
		if name, path, ok := strings.Cut(m.Path, "="); ok {
			m.Name, m.Path = name, path
		}
	}
	if err := doctor.CheckImage(m.Path); err != nil {
		return m, usageError{fmt.Errorf("--image %q: %w", word, wording.Cause(err))}
	}
	m.Path, err = filepath.Abs(m.Path)
	return m, err
}

func (c *config) images() (all []doctor.Image) {
	files, _ := c.imageWords()
	for _, word := range files {
		if m, err := parseImage(word); err == nil { // dialects reports the error
			all = append(all, doctor.Image{Image: m, Word: word})
		}
	}
	return all
}

const nameWidth = 12 // columns; a longer name moves the text of its line

func dialectsText() string {
	var b strings.Builder
	b.WriteString(`These backtraces, which programs print without markup, are resolved in place. A
frame with a build ID is resolved on any machine. Other frames are resolved by
the file at their path, if the frames of the trace prove that this file ran. Its
symbols must be where the trace has them, and a call must precede each return
address. --image names the file if it is elsewhere. A frame that is not proved
stays as it is, and --explain prints the reason.

`)
	for _, d := range dialect.All() {
		fmt.Fprintf(&b, "  %-*s  %s\n", nameWidth, d.Name, cli.Wrap(d.Who, nameWidth+4))
		sample := strings.TrimSpace(d.Sample)
		if most := cli.HelpWidth - nameWidth - 4; len(sample) > most {
			sample = sample[:most-3] + "..."
		}
		fmt.Fprintf(&b, "%*s%s\n%*s%s\n", nameWidth+4, "", sample, nameWidth+4, "", cli.Wrap("Needs "+d.Needs+".", nameWidth+4))
	}
	return b.String()
}
