package object

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// eachWord must find these words of mangled names. Identifiers may end in digits, and in Rust begin
// with digits.
func TestWordsOfNames(t *testing.T) {
	for _, test := range []struct {
		name string
		want []string // all of these, and possibly further words
	}{
		{"_ZN6ledger6settleEi", []string{"ledger", "settle"}},
		{"_ZN4foo13barE", []string{"foo1", "bar"}},
		{"_ZN4foo116Sha256Transform3runEv", []string{"foo1", "run"}},
		{"_ZN2ns15Sha256TransformC1ILj16EEEv", []string{"ns", "Sha256Transform"}},
		{"_ZN4core3fmt5write17hb4f9496a9a3f4b05E", []string{"core", "fmt", "write", "hb4f9496a9a3f4b05"}},
		{"_RNvC7_123four3bar", []string{"123four", "bar"}},
		{"_start@@V1", []string{"_start"}},
		{"_99999z", []string{"_99999z"}},
		{"_", []string{"_"}},
	} {
		var got []string
		eachWord([]byte(test.name), func(word []byte) { got = append(got, string(word)) })
		for _, word := range test.want {
			if !slices.Contains(got, word) {
				t.Errorf("%s: %q lacks %q", test.name, got, word)
			}
		}
	}
}

// The table of words must find the same symbols as a search that reads all names, in fewer steps.
func TestSymbolsAreFoundByWord(t *testing.T) {
	searched := 0
	for _, path := range machineFiles(t) {
		f := open(t, path)
		words := make(map[string][]string) // names by word
		for s := range f.AllSymbols() {
			if bytes.HasPrefix(s.Name, []byte("_Z")) && len(words) < 50 {
				eachWord(s.Name, func(word []byte) {
					if !isDigit(word[0]) { // otherwise a name may have the word after another length
						words[string(word)] = nil
					}
				})
			}
		}
		if len(words) == 0 {
			continue
		}
		for s := range f.AllSymbols() {
			for word := range words {
				if bytes.HasPrefix(s.Name, []byte("_")) && (bytes.Contains(s.Name, fmt.Appendf(nil, "%d%s", len(word), word)) || string(s.Name) == word) {
					words[word] = append(words[word], string(s.Name))
				}
			}
		}
		first, before := true, 0
		for word, want := range words {
			var got []string
			all, steps := f.SymbolsWithWord(word)
			for s := range all {
				if first || slices.Contains(want, string(s.Name)) {
					got = append(got, string(s.Name))
				}
			}
			if first {
				first, before = false, steps
				continue
			}
			if diff := cmp.Diff(slices.Compact(slices.Sorted(slices.Values(want))), slices.Compact(slices.Sorted(slices.Values(got)))); diff != "" {
				t.Errorf("%s: %s (-want +got)\n%s", path, word, diff)
			}
			searched++
			if _, again := f.SymbolsWithWord(word); again > before/2 && before > 100 {
				t.Errorf("%s: %d steps, and %d with the table", path, before, again)
			}
		}
	}
	if searched == 0 {
		t.Error("no file has mangled names")
	}
}
