package daemon

import (
	"fmt"
	"strings"
)

// A Fault is a mistake in a configuration file.
type Fault struct {
	File         string // empty if [Parse] was given the text alone
	Line, Column int    // from 1; Column counts characters; 0: the whole file
	Key          string // for example pipelines.app.input.files; empty: the whole file
	Problem      string // the fault, and its remedy
}

// String returns FILE:LINE:COLUMN: KEY: PROBLEM.
func (f Fault) String() string {
	var b strings.Builder
	if f.File != "" {
		b.WriteString(f.File + ":")
	}
	if f.Line > 0 {
		fmt.Fprintf(&b, "%d:%d:", f.Line, max(f.Column, 1))
	}
	if b.Len() > 0 {
		b.WriteByte(' ')
	}
	if f.Key != "" {
		b.WriteString(f.Key + ": ")
	}
	return b.String() + f.Problem
}

// Faults are the mistakes in a configuration file, sorted by line, with missing keys last. [Parse]
// and [Load] return them as their error.
type Faults []Fault

// Error returns a line for each of the first 50 faults.
func (f Faults) Error() string {
	var b strings.Builder
	for i, fault := range f {
		if i == maxFaults {
			fmt.Fprintf(&b, "\n%d more mistakes are not shown", len(f)-i)
			break
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(fault.String())
	}
	return b.String()
}

// nearest returns the word that a misspelt word probably means, or "". If word has at least 3
// bytes, a prefix match wins: the first of words that begins with word, or with which word begins.
// Without a prefix match, the word with the fewest edits wins. The limit of edits is a third of the
// bytes of word, but at least 1 and at most 3.
func nearest(word string, words []string) string {
	best, least := "", 1+min(3, max(1, len(word)/3))
	for _, w := range words {
		if len(word) >= 3 && (strings.HasPrefix(w, word) || strings.HasPrefix(word, w)) {
			return w
		}
		if d := distance(strings.ToLower(word), w, least); d < least {
			best, least = w, d
		}
	}
	return best
}

// distance returns the number of edits that turn a into b, or most if their lengths differ by at
// least most. An edit adds, removes or replaces a byte, or swaps two neighbours.
func distance(a, b string, most int) int {
	if len(a)-len(b) >= most || len(b)-len(a) >= most {
		return most
	}
	before, last, now := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		now[0] = i + 1
		for j := range len(b) {
			replaced := last[j]
			if a[i] != b[j] {
				replaced++
			}
			now[j+1] = min(last[j+1]+1, now[j]+1, replaced)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				now[j+1] = min(now[j+1], before[j-1]+1)
			}
		}
		before, last, now = last, now, before
	}
	return last[len(b)]
}

// listed joins words as in prose: "a, b and c" if and is "and".
func listed(words []string, and string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " " + and + " " + words[len(words)-1]
}
