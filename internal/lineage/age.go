package lineage

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A candidate is a file to read. Its Path is the name that rotation gave it, without the suffix of
// its compression.
type candidate struct {
	File
	content Content
}

// sortByAge sorts files from the oldest to the youngest. If names differ only in numbers, the
// numbers decide: clocks may be set back, and files may have the same time. Between names of
// different shapes, the times of the last changes decide. The parameter before lists names of older
// files, and all lists every known file beside the log.
func sortByAge(files []candidate, before []string, all []File) {
	if len(files) < 2 {
		return
	}
	shapes := make(map[string][]candidate)
	for _, f := range files {
		of := shape(f.Path)
		shapes[of] = append(shapes[of], f)
	}
	times := make(map[ID]time.Time)
	n := 0
	for _, of := range slices.Sorted(maps.Keys(shapes)) {
		same := shapes[of]
		sortByNumber(of, same, before, all)
		for i, f := range slices.Backward(same) {
			times[f.ID] = f.ModTime
			if i+1 < len(same) && times[same[i+1].ID].Before(f.ModTime) {
				times[f.ID] = times[same[i+1].ID]
			}
		}
		n += copy(files[n:], same)
	}
	if len(shapes) > 1 {
		slices.SortStableFunc(files, func(a, b candidate) int { return times[a.ID].Compare(times[b.ID]) })
	}
}

// sortByNumber sorts files as sortByAge does, by the numbers in their names. The parameter of is
// the shape of all names in files.
func sortByNumber(of string, files []candidate, before []string, all []File) {
	var names []File
	for _, f := range files {
		names = append(names, f.File)
	}
	votes := 0
	for _, older := range before {
		for _, c := range names {
			if shape(older) == of {
				votes += compareNumbers(c.Path, older)
			}
		}
	}
	if votes == 0 {
		votes = cmp.Or(votesOf(of, names), votesOf(of, all))
	}
	// without any evidence: a higher short number is an older file, as in logrotate's names, and a
	// later date is a younger file
	if votes == 0 {
		votes = -1
		if name := filepath.Base(files[0].Path); len(digits(name[strings.LastIndexFunc(name, func(r rune) bool { return r < '0' || r > '9' })+1:])) > 3 {
			votes = 1
		}
	}
	slices.SortStableFunc(files, func(a, b candidate) int {
		c := compareNumbers(a.Path, b.Path)
		if votes < 0 {
			c = -c
		}
		return cmp.Or(c, a.ModTime.Compare(b.ModTime))
	})
}

// votesOf returns a positive number if the numbers in names of the given shape grow with the files'
// times, a negative number if they shrink, and 0 if the times do not decide. It compares plain
// files with each other, and archives with each other, in the order of the numbers. If that is a
// tie, it compares archives with plain files. As an archive's time may be the time of its
// compression, such a pair votes only if the archive's time is the earlier one.
func votesOf(of string, all []File) (votes int) {
	all = slices.DeleteFunc(slices.Clone(all), func(c File) bool { return shape(c.Path) != of })
	slices.SortFunc(all, func(a, b File) int { return compareNumbers(a.Path, b.Path) })
	mixed := 0
	var last [2]*File // without and with compression
	for i := range all {
		b := &all[i]
		kind := 0
		if b.Packed {
			kind = 1
		}
		if a := last[kind]; a != nil {
			votes += b.ModTime.Compare(a.ModTime)
		}
		if a := last[1-kind]; a != nil && (b.Packed && b.ModTime.Before(a.ModTime) || a.Packed && a.ModTime.Before(b.ModTime)) {
			mixed += b.ModTime.Compare(a.ModTime)
		}
		last[kind] = b
	}
	return cmp.Or(votes, mixed)
}

// shape returns name with each number replaced by #.
func shape(name string) string {
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		if name[i]-'0' < 10 {
			if i == 0 || name[i-1]-'0' >= 10 {
				b.WriteByte('#')
			}
			continue
		}
		b.WriteByte(name[i])
	}
	return b.String()
}

// compareNumbers compares names byte by byte, but runs of digits by value.
func compareNumbers(a, b string) int {
	for a != "" && b != "" {
		x, y := digits(a), digits(b)
		if x == "" || y == "" {
			if a[0] != b[0] {
				return cmp.Compare(a[0], b[0])
			}
			a, b = a[1:], b[1:]
			continue
		}
		a, b = a[len(x):], b[len(y):]
		x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
		if c := cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y)); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

func digits(s string) string { return s[:len(s)-len(strings.TrimLeft(s, "0123456789"))] }
