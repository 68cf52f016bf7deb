package valgrind

import (
	"bytes"
	"math"
	"slices"
	"strings"
)

// A lossKind describes a kind of leaked blocks by its names in reports and options.
type lossKind struct {
	kind    string // kind of an error; "" if no error lists such blocks
	option  string // name of the kind in --errors-for-leak-kinds
	element string // element of a leak_summary
}

// lossKinds are the kinds of leaked blocks, in the order of Valgrind's leak summary.
var lossKinds = [...]lossKind{
	{"Leak_DefinitelyLost", "definite", "definitely_lost"},
	{"Leak_IndirectlyLost", "indirect", "indirectly_lost"},
	{"Leak_PossiblyLost", "possible", "possibly_lost"},
	{"Leak_StillReachable", "reachable", "still_reachable"},
	{"", "", "suppressed"},
}

const indirectlyLost = 1

// A loss is an amount of leaked memory.
type loss struct {
	bytes, blocks uint64
	known         bool
	noBlocks      bool // the number of blocks is unknown
}

// A summary adds up the errors and leaks of a document, to print Valgrind's ERROR SUMMARY and LEAK
// SUMMARY. Only documents of protocol 6 contain these summaries.
type summary struct {
	counted          bool   // the document has error counts; without them the errors are unknown
	counts, contexts uint64 // from the last errorcounts: all errors, and distinct errors
	leaks            uint64 // leaks that are errors: see countsAsError
	suppressed       uint64
	suppressions     uint64 // suppressions used

	suppressedContexts uint64 // different suppressed errors
	statedContexts     bool   // suppressedContexts is from an error_summary

	statedErrors bool // the errors are from an error_summary
	statedLeaks  bool // the leaks are from a leak_summary
	losses       [len(lossKinds)]loss
	nested       uint64 // bytes of indirectly lost blocks in texts about other leaks
	// the two numbers of the last loss record, as in "2 of 4"; they restart from 1 in each leak
	// check
	number, of uint64
	finished   bool // the next leak belongs to the leak check at the end
}

// leakErrorsOption begins the option that selects which kinds of leaks are errors.
const leakErrorsOption = "--errors-for-leak-kinds="

func (p *process) learnSummary(rec *Record) {
	s := &p.summary
	switch rec.Name {
	case "error":
		if rec.Continued {
			return
		}
		kind := string(rec.Get("kind"))
		for i := range lossKinds {
			if k := &lossKinds[i]; k.kind != "" && k.kind == kind {
				s.addLeak(rec, i)
				if p.countsAsError(k.option) {
					s.leaks++
				}
				return
			}
		}
	case "errorcounts":
		if !rec.Continued { // errorcounts include all errors so far
			s.counts, s.contexts = 0, 0
		}
		s.counted = true
		s.counts, s.contexts = addCounts(rec, s.counts, s.contexts)
	case "suppcounts":
		if !rec.Continued {
			s.suppressed, s.suppressions = 0, 0
		}
		s.suppressed, s.suppressions = addCounts(rec, s.suppressed, s.suppressions)
	case "status":
		s.finished = s.finished || string(bytes.TrimSpace(rec.Get("state"))) == "FINISHED"
	case "leak_summary":
		s.takeLosses(rec)
	case "error_summary":
		s.takeErrors(rec)
	}
}

// addCounts returns sum plus the counts in a record, and pairs plus the number of these counts.
func addCounts(rec *Record, sum, pairs uint64) (uint64, uint64) {
	for i := range rec.Items {
		if it := &rec.Items[i]; it.Leaf && it.Name == "count" {
			n, _ := parseNumber(it.Text)
			sum = plus(sum, n)
			pairs++
		}
	}
	return sum, pairs
}

// plus returns a + b, or the largest number if that overflows.
func plus(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}

// countsAsError reports whether Valgrind counts a leak of this kind as an error. By default,
// definite and possible leaks are errors.
func (p *process) countsAsError(kind string) bool {
	switch p.leakErrors {
	case "":
		return kind == "definite" || kind == "possible"
	case "all":
		return true
	}
	return slices.Contains(strings.Split(p.leakErrors, ","), kind)
}

// addLeak adds a loss record to the losses. Each leak check lists all leaks again, so addLeak
// discards the losses of the previous check when another one begins. A check begins if the record's
// number is not above the last one, if the total differs, or if the process has finished. If the
// document has a leak_summary, addLeak does nothing.
func (s *summary) addLeak(rec *Record, kind int) {
	if s.statedLeaks {
		return
	}
	var text []byte
	l := loss{known: true}
	for i := range rec.Items {
		it := &rec.Items[i]
		if !it.Leaf {
			continue
		}
		switch it.Name {
		case "leakedbytes":
			l.bytes, _ = parseNumber(it.Text)
		case "leakedblocks":
			l.blocks, _ = parseNumber(it.Text)
		case "what", "text":
			if text == nil {
				text = it.Text
			}
		}
	}
	number, of := lossNumber(text)
	if s.finished || number <= s.number || of != s.of {
		s.losses, s.nested, s.finished = [len(lossKinds)]loss{}, 0, false
	}
	s.number, s.of = number, of
	if _, sizes, ok := bytes.Cut(text, []byte("(")); ok { // "296 (96 direct, 200 indirect) bytes in 2 blocks"
		sizes, _, _ = bytes.Cut(sizes, []byte(" indirect)"))
		if own, others, ok := bytes.Cut(sizes, []byte(" direct, ")); ok {
			if n, ok := parseNumber(own); ok {
				l.bytes = n
			}
			n, _ := parseNumber(others)
			s.nested = plus(s.nested, n)
		}
	}
	sum := &s.losses[kind]
	*sum = loss{bytes: plus(sum.bytes, l.bytes), blocks: plus(sum.blocks, l.blocks), known: true}
}

// lossNumber returns the two numbers of "… in loss record 2 of 4".
func lossNumber(text []byte) (number, of uint64) {
	_, rest, _ := bytes.Cut(text, []byte(" in loss record "))
	first, last, _ := bytes.Cut(rest, []byte(" of "))
	number, _ = parseNumber(first)
	of, _ = parseNumber(last)
	return number, of
}

func (s *summary) takeLosses(rec *Record) {
	if !rec.Continued {
		s.losses, s.nested = [len(lossKinds)]loss{}, 0
	}
	s.statedLeaks = true
	for i := range rec.Items {
		for k := range lossKinds {
			if it := &rec.Items[i]; it.Depth == 0 && !it.Leaf && it.Name == lossKinds[k].element {
				l := &s.losses[k]
				l.known = true
				l.bytes, _ = parseNumber(childText(rec, i, "bytes"))
				l.blocks, _ = parseNumber(childText(rec, i, "blocks"))
			}
		}
	}
}

func (s *summary) takeErrors(rec *Record) {
	s.statedErrors, s.counted = true, true
	s.counts, _ = parseNumber(rec.Get("errors"))
	s.contexts, _ = parseNumber(rec.Get("error_contexts"))
	s.leaks = 0 // the counts include the leaks
	if n, ok := parseNumber(rec.Get("suppressed")); ok {
		s.suppressed = n
	}
	s.suppressedContexts, s.statedContexts = parseNumber(rec.Get("suppressed_contexts"))
}

// errors returns the number of errors and the number of distinct errors.
func (s *summary) errors() (all, contexts uint64) {
	return plus(s.counts, s.leaks), plus(s.contexts, s.leaks)
}

// leaked returns the losses of each kind. If no loss record lists indirectly lost blocks, their
// bytes are taken from the texts of other loss records.
func (s *summary) leaked() [len(lossKinds)]loss {
	all := s.losses
	if l := &all[indirectlyLost]; !l.known && s.nested > 0 {
		*l = loss{bytes: s.nested, known: true, noBlocks: true}
	}
	return all
}

// hasLosses reports whether the document lists leaks.
func (s *summary) hasLosses() bool {
	return slices.ContainsFunc(s.losses[:], func(l loss) bool { return l.known })
}
