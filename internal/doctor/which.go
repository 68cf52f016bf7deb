package doctor

import (
	"cmp"
	"fmt"
	"io"
	"math/bits"
	"os"
	"slices"
	"strings"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/judge"
	"github.com/symfilter/symfilter/internal/wording"
)

// Bounds of the search for the build that has written a log.
const (
	maxBuilds      = 4096 // files to try
	maxShownBuilds = 8    // files to list
)

// Weights of proofs in bits, and the sum that a build needs. In another build, a call precedes
// about one address in 32. A symbol or code from the log rarely matches in another build.
const (
	bitsOfCall, bitsOfSymbol = 5, 20
	bitsOfBuild              = 30
)

// usualFrames is the number of addresses that usually prove a file.
const usualFrames = 5

// A Build is a file whose code may have written a log, with the evidence for that in the log.
type Build struct {
	Path   string
	ID     buildid.ID // zero: none
	Copies int        // other files with the same ID

	proofs map[uint64]string // proofs of frames, by address; a recursion has one address
	size   int64
}

// BuildsBelow returns the files below a folder that can be values of --image, at most maxBuilds. If
// several files have the same build ID, it returns the largest.
func BuildsBelow(folder string) (all []Build) {
	at := make(map[buildid.ID]int)
	for path := range imagesBelow(folder) {
		id, size, err := idAndSize(path)
		if err != nil {
			continue
		}
		if i, twice := at[id]; twice && !id.IsZero() {
			if b := &all[i]; size > b.size { // the larger file has the debug information
				b.Path, b.size = path, size
			}
			all[i].Copies++
			continue
		}
		if len(all) == maxBuilds {
			break
		}
		at[id] = len(all)
		all = append(all, Build{Path: path, ID: id, size: size})
	}
	return all
}

// idAndSize returns the size of a file, and its build ID, or zero.
func idAndSize(path string) (id buildid.ID, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return id, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return id, 0, err
	}
	id, _ = buildid.Read(f, info.Size()) // an error means that there is none
	return id, info.Size(), nil
}

// maxPlaces bounds the addresses in a build that are counted as evidence.
const maxPlaces = 64

// Locate records that a frame of the log is at an address of b. proof is the kind of proof, such as
// judge.ByCall. At most maxPlaces addresses are kept.
func (b *Build) Locate(addr uint64, proof string) {
	if b.proofs == nil {
		b.proofs = make(map[uint64]string)
	}
	if len(b.proofs) < maxPlaces {
		b.proofs[addr] = proof
	}
}

// count returns the numbers of addresses in b that calls, symbols and code prove.
func (b *Build) count() (calls, symbols, codes int64) {
	for _, proof := range b.proofs {
		switch proof {
		case judge.ByCall:
			calls++
		case judge.BySymbol:
			symbols++
		case judge.ByCode:
			codes++
		}
	}
	return calls, symbols, codes
}

func (b *Build) bits() int64 {
	calls, symbols, codes := b.count()
	return bitsOfCall*calls + bitsOfSymbol*(symbols+codes)
}

// fits reports whether the evidence for b suffices to single b out among the given number of
// builds.
func (b *Build) fits(builds int) bool { return b.bits() >= bitsOfBuild+int64(bits.Len(uint(builds))) }

// WriteBuilds sorts builds by their evidence, and writes each build that fits the log, or may fit
// it. It reports whether exactly one fits. label is the name of the log. addresses is the number of
// the log's addresses without a name.
func WriteBuilds(w io.Writer, label string, builds []Build, addresses int64) (one bool) {
	slices.SortStableFunc(builds, func(a, b Build) int {
		return cmp.Or(cmp.Compare(b.bits(), a.bits()), strings.Compare(a.Path, b.Path))
	})
	fit := 0
	for fit < len(builds) && builds[fit].fits(len(builds)) {
		fit++
	}
	some := fit
	for some < len(builds) && builds[some].bits() > 0 {
		some++
	}
	for i := range builds[:min(some, maxShownBuilds)] {
		b := &builds[i]
		word := "fits"
		if i >= fit {
			word = "may fit"
		}
		fmt.Fprintf(w, "%-8s %s: %s\n", word, b.name(), b.proof())
	}
	if rest := some - maxShownBuilds; rest > 0 {
		fmt.Fprintf(w, "and %s more\n", wording.Count(int64(rest), "file", "files"))
	}
	tried := wording.Count(int64(len(builds)), "build was tried", "builds were tried")
	switch {
	case fit == 1:
		fmt.Fprintf(w, "%s; next: symfilter --image %s %s\n", tried, builds[0].Path, label)
	case fit > 1:
		fmt.Fprintf(w, "%s, and %d fit: the log does not show which one wrote it\n", tried, fit)
	case some > 0:
		fmt.Fprintf(w, "%s, and none is certain: the log has too few frames\n", tried)
	case addresses == 0:
		fmt.Fprintf(w, "%s has no address of native code that lacks a name; symfilter help dialects lists the backtraces that are read\n", label)
	case addresses < usualFrames:
		fmt.Fprintf(w, "%s, and none fits, but %s has only %s; at least %d are needed to show where a file was loaded\n", tried, label, wording.Count(addresses, "address", "addresses"), usualFrames)
	default:
		fmt.Fprintf(w, "%s, and none fits\n", tried)
	}
	return fit == 1
}

func (b *Build) name() string {
	name := b.Path
	if !b.ID.IsZero() {
		name += " (BuildID=" + b.ID.String() + ")"
	}
	if b.Copies > 0 {
		name += " and " + wording.Count(int64(b.Copies), "copy", "copies")
	}
	return name
}

// proof lists the evidence for b, by kind.
func (b *Build) proof() string {
	calls, symbols, codes := b.count()
	var parts []string
	for _, part := range []struct {
		n         int64
		one, many string
	}{{symbols, "symbol", "symbols"}, {codes, "listing of code", "listings of code"}, {calls, "call before a return address", "calls before return addresses"}} {
		if part.n > 0 {
			parts = append(parts, wording.Count(part.n, part.one, part.many))
		}
	}
	return strings.Join(parts, ", ")
}
