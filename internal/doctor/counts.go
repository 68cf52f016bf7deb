package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/judge"
	"github.com/symfilter/symfilter/internal/wording"
	"github.com/symfilter/symfilter/symbolize"
)

const (
	maxRemember = 4096 // unresolved modules remembered for all inputs
	// bytes of the names of all remembered modules: a name in a log may have several KiB
	maxNameBytes = 1 << 20
	maxListed    = 4  // modules that the summary names
	maxBases     = 16 // bases of files, of all inputs
	maxShownName = 64 // bytes of a name in the summary
)

// Counts has the counts of addresses in one or several inputs.
type Counts struct {
	Modules []symbolize.Unresolved // modules with unresolved addresses
	Failed  int64                  // unresolved addresses, even outside of all modules
	Asked   int64                  // all addresses

	early  int64           // answers by symbols before debug information was ready
	proofs filter.Proofs   // proofs of the answers for raw backtraces
	noCode filter.NoCode   // addresses of raw backtraces without code
	bases  []filter.Base   // bases of files that only calls prove
	taken  map[string]bool // paths of the files of --image that were used as modules
}

// CountsOf returns the counts of addresses in the log that f has filtered.
func CountsOf(f interface {
	Unresolved() ([]symbolize.Unresolved, int64)
	Stats() filter.Stats
	Bases() []filter.Base
}) Counts {
	modules, failed := f.Unresolved()
	stats := f.Stats()
	return Counts{Modules: modules, Failed: failed, Asked: failed + stats.Resolved, early: stats.Early, proofs: stats.Proofs, noCode: stats.NoCode, bases: f.Bases()}
}

// CountsOfReport returns the counts of unresolved addresses in a report.
func CountsOfReport(all []symbolize.Unresolved) (c Counts) {
	for _, u := range all {
		c.Failed += u.Frames
		if u.Name != "" {
			c.Modules = append(c.Modules, u)
		}
	}
	c.Asked = c.Failed
	return c
}

// A Sum adds up the counts of inputs. Its zero value is empty. A Sum is safe for concurrent use.
type Sum struct {
	mu        sync.Mutex
	counts    Counts // sums of the counts, without Modules
	modules   map[moduleName]*symbolize.Unresolved
	nameBytes int // bytes of the modules' names
}

type moduleName struct {
	id   buildid.ID
	name string
}

// Add adds the counts of an input. It keeps the last reason for each module, and leaves out new
// modules beyond maxRemember or maxNameBytes.
func (t *Sum) Add(c Counts) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts.Failed += c.Failed
	t.counts.Asked += c.Asked
	t.counts.early += c.early
	t.counts.proofs.Add(c.proofs)
	t.counts.noCode.Add(c.noCode)
	t.counts.bases = append(t.counts.bases, c.bases[:min(len(c.bases), maxBases-len(t.counts.bases))]...)
	if t.counts.taken == nil {
		t.counts.taken = make(map[string]bool)
	}
	maps.Copy(t.counts.taken, c.taken)
	for _, u := range c.Modules {
		key := moduleName{u.ID, u.Name}
		known := t.modules[key]
		if known == nil {
			if len(t.modules) >= maxRemember || t.nameBytes+len(u.Name) > maxNameBytes {
				continue
			}
			if t.modules == nil {
				t.modules = make(map[moduleName]*symbolize.Unresolved)
			}
			known = &symbolize.Unresolved{ID: u.ID, Name: u.Name}
			t.modules[key] = known
			t.nameBytes += len(u.Name)
		}
		known.Frames += u.Frames
		known.Err = u.Err
		if u.Candidate != "" {
			known.Candidate, known.Base = u.Candidate, u.Base
		}
	}
}

// Take records that a file of --image was used as a module.
func (t *Sum) Take(path string) { t.Add(Counts{taken: map[string]bool{path: true}}) }

// All returns the sum of the added Counts.
func (t *Sum) All() Counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	sum := t.counts
	sum.taken = maps.Clone(sum.taken)
	for _, u := range t.modules {
		sum.Modules = append(sum.Modules, *u)
	}
	return sum
}

// sorted returns the modules with unresolved addresses, and the number of addresses outside of
// these modules. The module with the most addresses is first.
func (c Counts) sorted() (modules []symbolize.Unresolved, outside int64) {
	modules = slices.SortedFunc(slices.Values(c.Modules), func(a, b symbolize.Unresolved) int {
		return cmp.Or(cmp.Compare(b.Frames, a.Frames), strings.Compare(a.Name, b.Name), strings.Compare(a.ID.String(), b.ID.String()))
	})
	outside = c.Failed
	for _, u := range modules {
		outside -= u.Frames
	}
	return modules, outside
}

// String returns a summary, such as "14 of 22 addresses stayed unresolved: inventory (9), libc.so.6
// (5)".
func (c Counts) String() string {
	of := fmt.Sprintf("%d of %s", c.Failed, wording.Count(c.Asked, "address", "addresses"))
	modules, outside := c.sorted()
	frames := map[string]int64{}
	for _, u := range modules {
		frames[shortName(u)] += u.Frames
	}
	if outside > 0 {
		frames["no module"] += outside
	}
	names := slices.SortedFunc(maps.Keys(frames), func(a, b string) int {
		return cmp.Or(cmp.Compare(frames[b], frames[a]), strings.Compare(a, b))
	})
	var list []string
	rest := int64(0)
	for i, name := range names {
		if i < maxListed {
			list = append(list, fmt.Sprintf("%s (%d)", name, frames[name]))
		} else {
			rest += frames[name]
		}
	}
	if rest > 0 {
		list = append(list, fmt.Sprintf("%d more (%d)", len(names)-maxListed, rest))
	}
	return of + " stayed unresolved: " + strings.Join(list, ", ")
}

// shortName returns the base name of a module, or its build ID if it has no name.
func shortName(u symbolize.Unresolved) string {
	name := path.Base(u.Name)
	switch {
	case u.Name == "" && u.ID.IsZero():
		return "no module"
	case u.Name == "":
		name = u.ID.String()
	}
	if len(name) > maxShownName {
		name = name[:maxShownName] + "…"
	}
	return name
}

// Early returns a line about addresses whose debug information was not ready in time, or "".
func (c Counts) Early() string {
	if c.early == 0 {
		return ""
	}
	return "some addresses were printed with a name from symbols, but without a line, because the wait ended before their debug information was found or inflated; give a longer --wait, such as --wait 5m"
}

// Proofs returns lines about raw backtraces: the number of frames by kind of proof, the load
// addresses that only calls prove, and the number of addresses without code. It leaves out numbers
// that are 0.
func (c Counts) Proofs() (lines []string) {
	var parts []string
	for _, p := range []struct {
		n    int64
		what string
	}{
		{c.proofs.BuildID, "by the build ID in the log"},
		{c.proofs.Process, "by the maps of their process"},
		{c.proofs.Symbol, "by a symbol of the file"},
		{c.proofs.Call, "by calls before the return addresses"},
		{c.proofs.Other, "by other bytes of the file"},
		{c.proofs.Path, "by the path of their file, which other frames or --image verify"},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	if len(parts) > 0 {
		lines = append(lines, "backtrace frames whose file is verified: "+strings.Join(parts, ", "))
	}
	for _, b := range c.bases {
		lines = append(lines, fmt.Sprintf("%s was loaded at 0x%x: %s", b.Path, b.Addr, b.Proof))
	}
	if w := c.noCode; w.Frames > 0 {
		lines = append(lines, fmt.Sprintf("left as logged: %s, such as 0x%x (%v)", wording.Count(w.Frames, "address", "addresses"), w.Addr, judge.ErrNoCode))
	}
	return lines
}
