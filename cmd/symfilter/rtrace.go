package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/internal/cli"
	"github.com/symfilter/symfilter/internal/wording"
	"github.com/symfilter/symfilter/markup"
	"github.com/symfilter/symfilter/rtrace"
)

// rtraceFlags are the flags of symfilter rtrace that sp-rtrace-postproc also has.
type rtraceFlags struct {
	processing rtrace.Processing
	sort       string
	resources  *uint64
	include    fileName
	exclude    fileName
}

// load checks that the flags do not contradict each other, reads the files that they name, and sets
// processing.
func (f *rtraceFlags) load() (err error) {
	p := &f.processing
	switch {
	case f.sort != "" && !p.Compress:
		return usageError{fmt.Errorf("--sort=%s needs --compress: add it", f.sort)}
	case f.include != "" && f.exclude != "":
		return usageError{fmt.Errorf("--include contradicts --exclude: remove one of them")}
	case f.resources != nil && *f.resources == 0:
		return usageError{fmt.Errorf("--resource=0 selects no type; the report lists the bits of the types, such as <1>")}
	}
	p.Sort = map[string]rtrace.Order{
		"size": rtrace.BySize, "size-asc": rtrace.BySizeAscending, "count": rtrace.ByCount, "count-asc": rtrace.ByCountAscending,
	}[f.sort]
	if f.resources != nil {
		p.Resources = *f.resources
	}
	if p.Include, err = readIndexes("--include", f.include); err != nil {
		return err
	}
	p.Exclude, err = readIndexes("--exclude", f.exclude)
	return err
}

// readIndexes reads the indexes of calls in a file.
func readIndexes(flag string, name fileName) (rtrace.Indexes, error) {
	if name == "" {
		return nil, nil
	}
	in, err := os.Open(string(name))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", flag, name, wording.Cause(err))
	}
	defer in.Close()
	all, err := rtrace.ReadIndexes(in)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", flag, name, err)
	}
	if info, err := in.Stat(); err == nil && info.Size() > 0 && len(all) == 0 {
		return nil, fmt.Errorf("%s %s: no line begins with the index of a call", flag, name)
	}
	return all, nil
}

func (r *reports) rtrace(at *arrival) io.WriteCloser {
	o := rtrace.Options{ReportOptions: r.options(at), Processing: r.c.rtrace.processing}
	if r.found != nil {
		return access.Rtrace(&o).(findingsReader).NewFindings(r.found.Collection, at.label, r.found.own)
	}
	if isStacked(r.output) {
		return r.tracedStacks(at, o)
	}
	switch r.output {
	case outputJSON:
		o.Output = rtrace.JSON
		return rtrace.NewReport(at.batch.w, o)
	case outputRTrace:
		return at.harmless(func(w io.Writer) io.WriteCloser { return rtrace.NewReport(w, o) })
	}
	return r.asMarkup(at, func(dst markup.Sink) io.WriteCloser { return rtrace.NewMarkup(dst, o) })
}

// A mask is a flag with bits, in hex as in reports.
type mask struct{ bits **uint64 }

func (m mask) Set(s string) error {
	bits, err := parseHex(strings.TrimPrefix(s, "@"))
	if err != nil {
		return fmt.Errorf("not a mask: write the sum of the bits that the report lists, in hex")
	}
	*m.bits = &bits
	return nil
}

type depth struct{ frames **int }

func (d depth) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return fmt.Errorf("not a number of frames")
	}
	*d.frames = &n
	return nil
}

// A ranges is a flag with addresses and address ranges, written as in maps.
type ranges []rtrace.Range

func (*ranges) Type() string { return cli.Repeated }

func (r *ranges) Set(s string) error {
	from, to, is := strings.Cut(s, "-")
	var a rtrace.Range
	var err error
	if a.From, err = parseHex(from); err == nil {
		a.To = a.From + 1
		if is {
			a.To, err = parseHex(to)
		}
	}
	if err != nil || a.From >= a.To {
		return fmt.Errorf("not an address: write 0x…, or 0x…-0x… for a range, whose end is excluded")
	}
	*r = append(*r, a)
	return nil
}

func parseHex(s string) (uint64, error) {
	return strconv.ParseUint(strings.TrimPrefix(strings.ToLower(s), "0x"), 16, 64)
}
