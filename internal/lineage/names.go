package lineage

import (
	"path/filepath"
	"slices"
	"strings"
)

// unreadSuffixes lists the suffixes of compressed and temporary files.
var unreadSuffixes = slices.Concat(archiveSuffixes, []string{".tmp", ".swp", "~"})

var archiveSuffixes = []string{".gz", ".zst", ".xz", ".bz2", ".lz4", ".lzo", ".lzma", ".br", ".z", ".zip", ".7z"}

// IsArchive reports whether name is the name of a compressed file, rotated or not: app.log.gz,
// app.log.gz.1. A followed file with any other name is read as lines, whatever its first bytes are.
func IsArchive(name string) bool {
	name = strings.ToLower(filepath.Base(name))
	return slices.ContainsFunc(archiveSuffixes, func(end string) bool {
		i := strings.LastIndex(name, end)
		return i > 0 && (i+len(end) == len(name) || isRotationPart(name[i+len(end):], false))
	})
}

// IsPacked reports whether name is the name of a compressed or temporary file.
func IsPacked(name string) bool { return packedBase(name) != "" }

// packedBase returns name without the suffix of a compressed or temporary file, or "" if name has
// no such suffix.
func packedBase(name string) string {
	for _, end := range unreadSuffixes {
		if i := len(name) - len(end); i > 0 && strings.EqualFold(name[i:], end) {
			return name[:i]
		}
	}
	return ""
}

// isRotated reports whether rotation may rename a file called base to name, without compression.
// For app.log, such names are app.log.1, app.log-20261120, app.log.old and app-20261120.log.
// app-2.log may belong to another process, and app.log.worker2 and app.log.2.json are other files.
func isRotated(base, name string) bool {
	if IsPacked(name) {
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

// RotatedBase returns the path of the followed file that rotation has moved to path, or "".
func RotatedBase(path string, followed func(base string) bool) string {
	dir, name := filepath.Split(path)
	ext := filepath.Ext(name)
	for i := range name {
		if i == 0 || !strings.ContainsRune(".-_", rune(name[i])) {
			continue
		}
		for _, base := range []string{name[:i], name[:i] + ext} {
			if base != name && isRotated(base, name) && followed(dir+base) {
				return dir + base
			}
		}
	}
	return ""
}

// maxPartDigits bounds a number in the name of a rotated file: nanoseconds since 1970 have 19
// digits.
const maxPartDigits = 19

// isRotationPart reports whether rotation may add rest to a name: numbers, dates, times and words
// such as old, each after a separator. If dated is set, a date must be among them.
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
		// times: 20261120T132438Z, 02T15
		case word == "t" && part[0] != 't' || word == "z" && part[0] != 'z':
		case strings.Count(part, "t") == 1 && strings.HasSuffix(part, "z") && strings.Trim(part, "0123456789tz") == "" && len(part) > 3:
		case word == "w" && part[0] == 'w' && len(part) == 3: // week of a year
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
		// one number: 20261120, 20261120132438
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
