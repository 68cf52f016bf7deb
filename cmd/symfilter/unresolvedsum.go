package main

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
	"github.com/symfilter/symfilter/internal/wording"
	"github.com/symfilter/symfilter/symbolize"
)

const (
	maxRemember  = 4096    // unresolved modules of all inputs
	maxNameBytes = 1 << 20 // of the names of these modules, together: a log may give each several KiB
	maxListed    = 4       // modules that the closing line names
	maxShownName = 64      // bytes of a name in the closing line
)

// counts are the addresses of one input.
type counts struct {
	modules []symbolize.Unresolved // in which addresses stayed unresolved
	failed  int64                  // addresses that stayed unresolved, with those in no module
	asked   int64                  // all addresses
	proofs  filter.Proofs          // the proofs of the answers for raw backtraces
	noCode  filter.NoCode          // addresses of raw backtraces at which there is no code
	taken   map[string]bool        // paths of the files of --image that were taken for modules
}

// countsOf returns the counts of a log.
func countsOf(f interface {
	Unresolved() ([]symbolize.Unresolved, int64)
	Stats() filter.Stats
}) counts {
	modules, failed := f.Unresolved()
	stats := f.Stats()
	return counts{modules: modules, failed: failed, asked: failed + stats.Resolved, proofs: stats.Proofs, noCode: stats.NoCode}
}

// An unresolvedSum adds up the counts of inputs. Its zero value is empty. Its methods are safe for
// concurrent use.
type unresolvedSum struct {
	mu        sync.Mutex
	modules   map[moduleName]*symbolize.Unresolved
	nameBytes int // of modules
	failed    int64
	asked     int64
	rests     filter.Proofs
	wild      filter.NoCode
	taken     map[string]bool
}

type moduleName struct {
	id   buildid.ID
	name string
}

// add adds the counts of an input. The last reason given for a module is kept.
func (t *unresolvedSum) add(c counts) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed += c.failed
	t.asked += c.asked
	t.rests.Add(c.proofs)
	t.wild.Add(c.noCode)
	if t.taken == nil {
		t.taken = make(map[string]bool)
	}
	maps.Copy(t.taken, c.taken)
	for _, u := range c.modules {
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

// take notes that a file of --image was taken for a module.
func (t *unresolvedSum) take(path string) { t.add(counts{taken: map[string]bool{path: true}}) }

// all returns the sum of what was added.
func (t *unresolvedSum) all() counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	sum := counts{failed: t.failed, asked: t.asked, proofs: t.rests, noCode: t.wild, taken: maps.Clone(t.taken)}
	for _, u := range t.modules {
		sum.modules = append(sum.modules, *u)
	}
	return sum
}

// sorted returns the modules with unresolved addresses, those with the most first, and the number
// of addresses in no module.
func (c counts) sorted() (modules []symbolize.Unresolved, outside int64) {
	modules = slices.SortedFunc(slices.Values(c.modules), func(a, b symbolize.Unresolved) int {
		return cmp.Or(cmp.Compare(b.Frames, a.Frames), strings.Compare(a.Name, b.Name), strings.Compare(a.ID.String(), b.ID.String()))
	})
	outside = c.failed
	for _, u := range modules {
		outside -= u.Frames
	}
	return modules, outside
}

// String returns what stayed unresolved: 14 of 22 addresses stayed unresolved: inventory (9),
// libc.so.6 (5).
func (c counts) String() string {
	of := fmt.Sprintf("%d of %s", c.failed, wording.Count(c.asked, "address", "addresses"))
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

// shortName returns the name of a module without its folders, or its build ID if it has none.
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
