package follow

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// packed lists the suffixes of compressed and temporary files, which are not read as they are.
var packed = slices.Concat(archives, []string{".tmp", ".swp", "~"})

// archives lists the suffixes of compressed files.
var archives = []string{".gz", ".zst", ".xz", ".bz2", ".lz4", ".lzo", ".lzma", ".br", ".z", ".zip", ".7z"}

// IsArchive reports whether the name of a followed file is that of a compressed one, which may have
// been rotated: app.log.gz, app.log.gz.1. Files with other names hold lines, whatever they begin with.
func IsArchive(name string) bool {
	name = strings.ToLower(filepath.Base(name))
	return slices.ContainsFunc(archives, func(end string) bool {
		i := strings.LastIndex(name, end)
		return i > 0 && (i+len(end) == len(name) || isRotationPart(name[i+len(end):], false))
	})
}

func isPacked(name string) bool { return packedBase(name) != "" }

// packedBase returns name without the suffix of a compression; "" if it has none.
func packedBase(name string) string {
	for _, end := range packed {
		if i := len(name) - len(end); i > 0 && strings.EqualFold(name[i:], end) {
			return name[:i]
		}
	}
	return ""
}

// isRotated reports whether rotation may rename a file called base to name, which is not
// compressed: app.log.1, app.log-20261120, app.log.old; app-20261120.log, but not app-2.log, which
// may belong to another process, nor app.log.worker2 or app.log.2.json.
func isRotated(base, name string) bool {
	if isPacked(name) {
		return false
	}
	if rest, ok := strings.CutPrefix(name, base); ok {
		return isRotationPart(rest, false)
	}
	ext := filepath.Ext(base)
	stem := strings.TrimSuffix(base, ext)
	if ext == "" || stem == "" {
		return false
	}
	rest, ok := strings.CutPrefix(name, stem)
	rest, end := strings.CutSuffix(rest, ext)
	return ok && end && isRotationPart(rest, true)
}

// maxPartDigits is the longest number in the name of a rotated file: nanoseconds since 1970 have 19
// digits.
const maxPartDigits = 19

// isRotationPart reports whether rest may be added to a name by rotation: numbers, dates, times and
// words such as old, each after a separator. If dated, a date must be among them.
func isRotationPart(rest string, dated bool) bool {
	if len(rest) < 2 || !strings.ContainsRune(".-_", rune(rest[0])) {
		return false
	}
	var numbers []string
	known := false
	for _, part := range strings.FieldsFunc(strings.ToLower(rest), func(r rune) bool { return strings.ContainsRune(".-_:+, ", r) }) {
		word := strings.Trim(part, "0123456789")
		switch {
		case len(part) > maxPartDigits:
			return false
		case word == "": // a number
		// 20261120T132438Z, 02T15
		case word == "t" && part[0] != 't' || word == "z" && part[0] != 'z':
		case strings.Count(part, "t") == 1 && strings.HasSuffix(part, "z") && strings.Trim(part, "0123456789tz") == "" && len(part) > 3:
		case word == "w" && part[0] == 'w' && len(part) == 3: // the week of a year
		case slices.Contains(months, part):
		case slices.Contains(rotationWords, word) && strings.HasPrefix(part, word):
		default:
			return false
		}
		known = true
		numbers = append(numbers, strings.FieldsFunc(part, func(r rune) bool { return r < '0' || r > '9' })...)
	}
	return known && (!dated || hasDate(numbers))
}

var (
	rotationWords = []string{"old", "prev", "previous", "last", "bak", "backup", "rotated", "save", "saved", "orig"}
	months        = []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}
)

// hasDate reports whether numbers contain a date, as one number or three, or a time in seconds or
// milliseconds since 1970.
func hasDate(numbers []string) bool {
	for i, n := range numbers {
		switch {
		// 20261120132438
		case len(n) >= 8 && len(n) <= 14 && isYear(n[:4]) && inRange(n[4:6], 12) && inRange(n[6:8], 31):
			return true
		case len(n) == 10 && n[0] == '1', len(n) == 13 && n[0] == '1':
			return true
		case i+2 >= len(numbers):
		case isYear(n) && inRange(numbers[i+1], 12) && inRange(numbers[i+2], 31): // 2026-11-20
			return true
		// 20-11-2026, 11-20-2026
		case len(n) == 2 && len(numbers[i+1]) == 2 && inRange(n, 31) && inRange(numbers[i+1], 31) && isYear(numbers[i+2]):
			return true
		}
	}
	return false
}

func isYear(s string) bool { return len(s) == 4 && (s[:2] == "19" || s[:2] == "20") }

// inRange reports whether s is a number of two digits from 1 to most.
func inRange(s string, most int) bool {
	if len(s) != 2 {
		return false
	}
	n := int(s[0]-'0')*10 + int(s[1]-'0')
	return n >= 1 && n <= most
}

// sortByAge sorts files from the oldest to the youngest. Among those whose names differ in numbers only,
// the numbers decide, so that the order survives a clock that is set back, and files of the same clock
// tick. Files of several shapes of names are merged by the time of their last change: a file that is
// older than another one of its shape was last changed before that, whatever its own time is. before
// lists names of files known to be older; all lists all files of the folder.
func sortByAge(files []*generation, before []string, all []sibling) {
	if len(files) < 2 {
		return
	}
	shapes := make(map[string][]*generation)
	for _, g := range files {
		of := shape(g.rotatedName())
		shapes[of] = append(shapes[of], g)
	}
	times := make(map[*generation]time.Time)
	n := 0
	for _, of := range slices.Sorted(maps.Keys(shapes)) {
		same := shapes[of]
		sortByNumber(of, same, before, all)
		for i, g := range slices.Backward(same) {
			times[g] = g.mtime
			if i+1 < len(same) && times[same[i+1]].Before(g.mtime) {
				times[g] = times[same[i+1]]
			}
		}
		n += copy(files[n:], same)
	}
	if len(shapes) > 1 {
		slices.SortStableFunc(files, func(a, b *generation) int { return times[a].Compare(times[b]) })
	}
}

// sortByNumber does what sortByAge does for files of one shape.
func sortByNumber(of string, files []*generation, before []string, all []sibling) {
	var names []sibling
	for _, g := range files {
		names = append(names, sibling{path: g.rotatedName(), mtime: g.mtime, packed: g.contents != nil})
	}
	votes := 0
	for _, older := range before {
		for _, c := range names {
			if shape(older) == of {
				votes += compareNumbers(c.path, older)
			}
		}
	}
	if votes == 0 {
		votes = cmp.Or(votesOf(of, names), votesOf(of, all))
	}
	if votes == 0 { // short numbers count down with age, as logrotate's do; dates count up
		votes = -1
		if name := filepath.Base(files[0].rotatedName()); len(digits(name[strings.LastIndexFunc(name, func(r rune) bool { return r < '0' || r > '9' })+1:])) > 3 {
			votes = 1
		}
	}
	slices.SortStableFunc(files, func(a, b *generation) int {
		c := compareNumbers(a.rotatedName(), b.rotatedName())
		if votes < 0 {
			c = -c
		}
		return cmp.Or(c, a.mtime.Compare(b.mtime))
	})
}

// votesOf returns whether numbers grow with age or time among the files of a shape: the number of
// neighbours, sorted by number, whose time grows, minus the number of those whose time shrinks. The
// time of an archive is compared with those of archives, and with that of another file only if the
// archive is the older one: it may be the time of its compression.
func votesOf(of string, all []sibling) (votes int) {
	all = slices.DeleteFunc(slices.Clone(all), func(c sibling) bool { return shape(c.path) != of })
	slices.SortFunc(all, func(a, b sibling) int { return compareNumbers(a.path, b.path) })
	mixed := 0
	var last [2]*sibling // without and with compression
	for i := range all {
		b := &all[i]
		kind := 0
		if b.packed {
			kind = 1
		}
		if a := last[kind]; a != nil {
			votes += b.mtime.Compare(a.mtime)
		}
		if a := last[1-kind]; a != nil && (b.packed && b.mtime.Before(a.mtime) || a.packed && a.mtime.Before(b.mtime)) {
			mixed += b.mtime.Compare(a.mtime)
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

// digits returns the digits at the beginning of s.
func digits(s string) string { return s[:len(s)-len(strings.TrimLeft(s, "0123456789"))] }
