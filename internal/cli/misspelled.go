package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// OneDash returns an error if a word of args is a long flag after one dash. pflag would read such a
// word as a group of short flags.
func OneDash(args []string, set *pflag.FlagSet) error {
	for i := 0; i < len(args) && args[i] != "--"; i++ {
		word := args[i]
		name, isFlag := strings.CutPrefix(word, "-")
		if !isFlag || name == "" {
			continue
		}
		long, isLong := strings.CutPrefix(name, "-")
		var flag *pflag.Flag
		switch {
		case isLong:
			flag = set.Lookup(long)
		case len(name) == 1:
			flag = set.ShorthandLookup(name)
		default:
			known, _, _ := strings.Cut(name, "=")
			if len(known) > 1 && set.Lookup(known) != nil {
				return fmt.Errorf("%s: write -%s, with two dashes", word, word)
			}
		}
		if flag != nil && flag.NoOptDefVal == "" {
			i++ // the next word is the flag's value
		}
	}
	return nil
}

// NearFlag returns the only flag of set that begins with name. Otherwise it returns the only flag
// that differs from name by one slip, or "".
func NearFlag(name string, set *pflag.FlagSet) string {
	var heads, slips []string
	set.VisitAll(func(f *pflag.Flag) {
		if strings.HasPrefix(f.Name, name) {
			heads = append(heads, f.Name)
		}
		if OneSlip(f.Name, name) {
			slips = append(slips, f.Name)
		}
	})
	for _, found := range [][]string{heads, slips} {
		if len(found) == 1 {
			return found[0]
		}
	}
	return ""
}

// OneSlip reports whether a and b differ by one inserted, deleted or replaced byte, or by one
// exchange of neighbouring bytes.
func OneSlip(a, b string) bool { return OneApart(a, b) || exchanged(a, b) }

// OneApart reports whether a and b differ by one inserted, deleted or replaced byte.
func OneApart(a, b string) bool {
	if len(a) < len(b) {
		a, b = b, a
	}
	i := 0
	for i < len(b) && a[i] == b[i] {
		i++
	}
	switch len(a) - len(b) {
	case 0:
		return i < len(a) && a[i+1:] == b[i+1:]
	case 1:
		return a[i+1:] == b[i:]
	}
	return false
}

// exchanged reports whether a and b differ by one exchange of neighbouring bytes.
func exchanged(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	return i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
}
