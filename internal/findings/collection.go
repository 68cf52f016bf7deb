package findings

import (
	"slices"
	"strconv"
	"strings"

	"github.com/symfilter/symfilter/internal/report"
)

// A Collection collects the findings of a run from all its inputs, and merges equal ones. Findings
// of two processes are equal if they have the same fingerprint and ordinal: the second finding with
// a fingerprint in one process equals the second in another. A Collection is not safe for
// concurrent use.
type Collection struct {
	// Left is the number of findings that were left out, since memory and the number of processes
	// are bounded. If it is not 0, a gate must not pass.
	Left int64

	processes []Process
	all       []*Finding
	equal     map[string]*equalFindings // by fingerprint
	share     report.Share
	used      map[string]bool   // names of suppressions that reports list as used
	linkage   map[string]string // linkage names by demangled names, set by KnowLinkage
}

// A Process is a process that is named in reports. If the reports of a log name no process, the log
// itself is a Process.
type Process struct {
	Input    string   // name of the input
	Source   Source   // source of its findings
	Tool     string   // tool as in a [Finding]; empty: unknown
	Command  []string // program and arguments; nil: unknown
	PID      string   // empty: unknown
	Complete bool     // the report is not truncated, so no finding is missing
}

// An equalFindings holds the findings with one fingerprint.
type equalFindings struct {
	first *Finding
	more  []*Finding // findings with ordinals above 1, in order

	// process is the process of the last added finding, and count is the number of findings in that
	// process. counts has the numbers of findings in earlier processes.
	process, count int
	counts         map[int]int
}

// at returns the finding with this ordinal, or nil.
func (e *equalFindings) at(ordinal int) *Finding {
	switch {
	case ordinal == 1:
		return e.first
	case ordinal-2 < len(e.more):
		return e.more[ordinal-2]
	}
	return nil
}

func (e *equalFindings) turnTo(process int) {
	if e.process == process {
		return
	}
	if e.counts == nil {
		e.counts = make(map[int]int)
	}
	e.counts[e.process] = e.count
	e.process, e.count = process, e.counts[process]
}

// New returns an empty Collection. memory grants the bytes of its findings: see [report.BudgetOf].
func New(memory report.Ledger) *Collection {
	return &Collection{
		equal: make(map[string]*equalFindings),
		share: report.NewShare(memory),
	}
}

// maxRunProcesses bounds the processes of a run. Each takes processSize bytes and its command line.
const maxRunProcesses = 1 << 20

// Begin adds a process, and returns its number, from 0. If there are too many processes or no
// memory, it counts the process in Left, and returns -1.
func (s *Collection) Begin(p Process) int {
	if len(s.processes) >= maxRunProcesses || !s.share.Take(processSize+commandSize(p.Command), 0) {
		s.Left++
		return -1
	}
	s.processes = append(s.processes, p)
	return len(s.processes) - 1
}

// SetCommand sets the program and the arguments of a process, if there is memory for them.
func (s *Collection) SetCommand(number int, command []string) {
	p := s.Process(number)
	if p == nil || slices.Equal(p.Command, command) || !s.share.Take(commandSize(command), 0) {
		return
	}
	p.Command = command
}

const processSize = 256 // bytes of a process without its command line

// commandSize returns the approximate bytes of a command line.
func commandSize(command []string) (n int64) {
	for _, arg := range command {
		n += int64(len(arg)) + 32
	}
	return n
}

// Process returns the process with this number, or nil for -1. The caller may change the process.
// The pointer is valid until Begin is called.
func (s *Collection) Process(number int) *Process {
	if number < 0 || number >= len(s.processes) {
		return nil
	}
	return &s.processes[number]
}

// Processes returns the processes by number.
func (s *Collection) Processes() []Process { return s.processes }

// All returns the findings, in the order in which they were first added.
func (s *Collection) All() []*Finding { return s.all }

// Add adds count occurrences of a finding of a process. If x equals an earlier finding, Add returns
// the earlier one; otherwise it keeps and returns x. Without memory, it counts x in Left, and
// returns nil. Identify must have been called.
func (s *Collection) Add(process int, x *Finding, count uint64) *Finding {
	e := s.equal[x.Fingerprint]
	var known *Finding
	ordinal := 1
	if e != nil {
		e.turnTo(process)
		ordinal = e.count + 1
		known = e.at(ordinal)
	}
	size := int64(entrySize)
	if known == nil {
		size = x.size()
	}
	if !s.share.Take(size, 0) {
		s.Left++
		return nil
	}
	if e == nil {
		e = &equalFindings{process: process}
		s.equal[x.Fingerprint] = e
	}
	e.count = ordinal
	if known == nil {
		x.Ordinal, x.Seen = ordinal, nil
		x.keep()
		if known = x; e.first == nil {
			e.first = x
		} else {
			e.more = append(e.more, x)
		}
		s.all = append(s.all, x)
	}
	known.occur(process, count)
	return known
}

// maxUsed bounds the names of used suppressions, and maxUsedName the bytes of each.
const (
	maxUsed     = 1 << 14
	maxUsedName = 1 << 10
)

// UseSuppression records that a report lists the suppression of this name as used. It records at
// most maxUsed names.
func (s *Collection) UseSuppression(name string) {
	if s.used == nil {
		s.used = make(map[string]bool)
	}
	if len(s.used) < maxUsed && len(name) <= maxUsedName {
		s.used[name] = true
	}
}

// UsedSuppression reports whether a report lists the suppression of this name as used.
func (s *Collection) UsedSuppression(name string) bool { return s.used[name] }

// KnowLinkage records linkage as the linkage name of the function that has the name fn in reports,
// if there is memory for it. It ignores later names for fn: they are variants of one constructor or
// destructor.
func (s *Collection) KnowLinkage(fn, linkage string) {
	if _, known := s.linkage[fn]; known || len(fn)+len(linkage) > maxNames || !s.share.Take(int64(len(fn)+len(linkage)+linkageSize), 0) {
		return
	}
	if s.linkage == nil {
		s.linkage = make(map[string]string)
	}
	s.linkage[fn] = linkage
}

const (
	maxNames    = 16 << 10 // bytes of a name and its linkage name together
	linkageSize = 96       // bytes of an entry without the two names
)

// Linkage returns the linkage name of a frame. This is the frame's own linkage name, the name that
// KnowLinkage has recorded, or the frame's name if that may be a symbol's. Linkage returns "" if
// none is known.
func (s *Collection) Linkage(f *TraceFrame) string {
	switch {
	case f.Linkage != "" && f.Linkage != f.Func:
		return f.Linkage
	case strings.ContainsAny(f.Func, "(<: "): // demangled
		return s.linkage[f.Func]
	}
	return f.Func
}

// Occurred adds count occurrences in a process to a finding that Add has returned for that process.
func (s *Collection) Occurred(x *Finding, process int, count uint64) { x.occur(process, count) }

func (x *Finding) occur(process int, count uint64) {
	if n := len(x.Seen); n > 0 && x.Seen[n-1].Process == process {
		x.Seen[n-1].Count += count
		return
	}
	x.Seen = append(x.Seen, Occurrence{process, count})
}

// ID returns the fingerprint with the ordinal, such as 3d75302b…:1, which is unique in the run.
func (x *Finding) ID() string { return x.Fingerprint + ":" + strconv.Itoa(x.Ordinal) }

// Approximate sizes in bytes, without strings: entrySize of an Occurrence, baseSize of a Finding,
// frameSize of a TraceFrame, refSize of a pointer to a frame.
const (
	entrySize = 128
	baseSize  = 512
	frameSize = 320
	refSize   = 8
)

// size returns the approximate bytes of the finding, without frames that are already counted.
func (x *Finding) size() int64 {
	n := baseSize + entrySize + len(x.Message)
	for _, d := range x.Detail {
		n += len(d)
	}
	for t := range x.Traces {
		n += len(x.Traces[t].Message) + refSize*len(x.Traces[t].Frames)
		for _, f := range x.Traces[t].Frames {
			if !f.counted {
				n += frameSize + len(f.Func) + len(f.Linkage) + len(f.File) + len(f.Object)
			}
		}
	}
	return int64(n)
}

// keep marks the finding's frames as counted by the Collection.
func (x *Finding) keep() {
	for t := range x.Traces {
		for _, f := range x.Traces[t].Frames {
			f.counted = true
		}
	}
}
