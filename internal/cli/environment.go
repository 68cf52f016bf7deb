package cli

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// Variable returns the name of the environment variable that sets a flag.
func (p *Program[V]) Variable(flag string) string {
	return strings.ToUpper(p.Name + "_" + strings.ReplaceAll(flag, "-", "_"))
}

// InEnvironment reports whether the name of any variable begins with the program's name and "_". If
// it returns false, FromEnvironment and UnknownVariables need not be called.
func (p *Program[V]) InEnvironment(environment []string) bool {
	prefix := p.Variable("")
	return slices.ContainsFunc(environment, func(v string) bool {
		return len(v) > len(prefix) && strings.EqualFold(v[:len(prefix)], prefix) // Windows ignores case
	})
}

// FromEnvironment sets flags from the environment, unless the command line has set them. It ignores
// empty variables.
func (p *Program[V]) FromEnvironment(set *pflag.FlagSet, lookup func(string) (string, bool)) (err error) {
	set.VisitAll(func(f *pflag.Flag) {
		if f.Changed || err != nil || f.Name == "help" || f.Name == "version" {
			return
		}
		name := p.Variable(f.Name)
		value, ok := lookup(name)
		if !ok || value == "" {
			return
		}
		values := []string{value}
		switch f.Value.Type() {
		case Repeated:
			values = filepath.SplitList(value)
		case EachLine:
			values = strings.Split(value, "\n")
		}
		for _, v := range values {
			if v == "" {
				continue
			}
			if e := set.Set(f.Name, v); e != nil {
				err = fmt.Errorf("environment variable %s: %w", name, e)
				return
			}
		}
	})
	return err
}

// UnknownVariables returns a message for each variable that begins with the program's name but
// names no flag. A message may suggest a flag of set. Empty variables, and variables that
// Kubernetes sets, are ignored.
func (p *Program[V]) UnknownVariables(environment []string, set *pflag.FlagSet) (messages []string) {
	for _, v := range environment {
		name, value, _ := strings.Cut(v, "=")
		word, ours := strings.CutPrefix(name, p.Variable(""))
		if !ours || value == "" || isOfKubernetes(word) {
			continue
		}
		flag := strings.ToLower(strings.ReplaceAll(word, "_", "-"))
		if f := p.Flag(flag, ^CommandSet(0)); f != nil && word == strings.ToUpper(word) {
			continue
		}
		message := "environment variable " + name + ": no flag has that name"
		if near := NearFlag(flag, set); near != "" {
			message += ": did you mean " + p.Variable(near) + "?"
		}
		messages = append(messages, message)
	}
	return messages
}

// isOfKubernetes reports whether word is the end of a variable that Kubernetes sets for a service
// with the program's name.
func isOfKubernetes(word string) bool {
	first, _, _ := strings.Cut(word, "_")
	return first == "SERVICE" || first == "PORT"
}
