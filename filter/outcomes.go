package filter

import (
	"errors"
	"io/fs"

	"github.com/symfilter/symfilter/internal/judge"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/markup"
	"github.com/symfilter/symfilter/symbolize"
)

// An Origin is the place of an address in the log: a kind of element, or a raw frame.
type Origin uint8

const (
	OriginBT   Origin = iota // a bt element
	OriginPC                 // a pc element
	OriginData               // a data element
	OriginRaw                // a frame of a raw backtrace
	Origins                  // number of Origins
)

// String returns the tag of the element, or "raw".
func (o Origin) String() string { return [Origins]string{"bt", "pc", "data", "raw"}[o] }

// A Result is the outcome of the lookup of an address.
type Result uint8

const (
	ResultResolved   Result = iota // a function with its line, or a variable
	ResultSymbolOnly               // the name of a function, without a line
	ResultNoSymbol                 // the module's file has no name for the address
	ResultNoFile                   // the module has no file
	ResultNoModule                 // the module, or the address in it, is unknown
	ResultPending                  // the file is still being searched
	ResultFault                    // the file cannot be used
	Results                        // number of Results
)

// String returns the result as a word: "resolved", "symbol_only".
func (r Result) String() string {
	return [Results]string{"resolved", "symbol_only", "no_symbol", "no_file", "no_module", "pending", "fault"}[r]
}

// Outcomes count address lookups by origin and result. Values of hexdicts do not count: they may be
// numbers.
type Outcomes [Origins][Results]int64

// Add adds the counts of p.
func (o *Outcomes) Add(p *Outcomes) {
	for i := range o {
		for k := range o[i] {
			o[i][k] += p[i][k]
		}
	}
}

// Sub subtracts the counts of p.
func (o *Outcomes) Sub(p *Outcomes) {
	for i := range o {
		for k := range o[i] {
			o[i][k] -= p[i][k]
		}
	}
}

func (r *resolver) countAnswer(from Origin, a *answer) {
	result := ResultResolved
	switch last := len(a.text.cuts) - 1; {
	case a.mod == nil:
		result = ResultNoModule
	case !a.hasText:
		result = resultOf(a.err, ResultFault)
	case last >= 0 && a.text.cuts[last].file == a.text.cuts[last].name:
		result = ResultSymbolOnly
	}
	r.outcomes[from][result]++
}

// countCode counts the answer for a code address, unless the element has no address.
func (r *resolver) countCode(from Origin, addr uint64, kind markup.PCKind, a *answer) {
	if addr != 0 || kind != markup.Ambiguous || a.mod != nil {
		r.countAnswer(from, a)
	}
}

// resultOf returns the result of a lookup that failed with err. A nil err means that the file has
// no name for the address. The argument other is returned for errors that have no result of their
// own.
func resultOf(err error, other Result) Result {
	switch _, fault := errors.AsType[*symbolize.FaultError](err); {
	case err == nil, errors.Is(err, symbolize.ErrNoSymbol):
		return ResultNoSymbol
	case errors.Is(err, symbolize.ErrPending):
		return ResultPending
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, report.ErrNoFile), errors.Is(err, judge.ErrKernel), errors.Is(err, report.ErrDeleted):
		return ResultNoFile
	case fault:
		return ResultFault
	}
	return other
}

// countPlace counts a raw frame that was not located. It ignores wild addresses, at which no file
// has code.
func (r *resolver) countPlace(err error) {
	if err != judge.ErrNoCode {
		r.outcomes[OriginRaw][resultOf(err, ResultNoModule)]++
	}
}
