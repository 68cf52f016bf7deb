package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// A Setter parses and keeps the value of its flag. A Setter with a Type method may return Switch,
// Repeated or EachLine from it.
type Setter interface{ Set(string) error }

// Typed is a Setter that returns the type of its value: Switch, Repeated or EachLine.
type Typed interface {
	Setter
	Type() string
}

// Types of values. After a flag whose type ends in Array, completion offers the flag again.
const (
	Switch   = "bool"
	Repeated = "stringArray" // a list; in the environment, separated as in PATH
	// a list; in the environment, one value on each line, since values may contain colons
	EachLine = "lineArray"
)

// isRepeated reports whether a flag of this type may be repeated.
func isRepeated(kind string) bool { return strings.HasSuffix(kind, "Array") }

// Define adds the flags of the given commands to set. v gets their values.
func (p *Program[V]) Define(set *pflag.FlagSet, v *V, in CommandSet) {
	for f := range p.Flags() {
		if f.In&in == 0 {
			continue
		}
		defined := set.VarPF(f.Value(v), f.Name, f.Short, f.Text)
		defined.NoOptDefVal = f.Alone
		if f.Metavar == "" {
			defined.NoOptDefVal = "true"
		}
	}
}

// A value is a pflag.Value that calls set with each value of the flag. Its String is empty, so that
// pflag prints no default.
type value struct {
	set  func(string) error
	kind string
}

func (v value) Set(s string) error { return v.set(s) }
func (v value) Type() string       { return v.kind }
func (value) String() string       { return "" }

// Value returns the value of the flag in v.
func (f *Flag[V]) Value(v *V) pflag.Value {
	switch field := f.Field(v).(type) {
	case *bool:
		return value{kind: Switch, set: func(s string) (err error) {
			*field, err = ParseBool(s)
			return err
		}}
	case *string:
		return value{set: func(s string) error {
			if err := f.check(s); err != nil {
				return err
			}
			*field = s
			return nil
		}}
	case *[]string:
		return value{kind: Repeated, set: func(s string) error {
			if s == "" {
				return ErrEmpty
			}
			*field = append(*field, s)
			return nil
		}}
	case Typed:
		return value{kind: field.Type(), set: field.Set}
	case Setter:
		return value{set: field.Set}
	}
	panic("--" + f.Name + " has a field of an unsupported type")
}

// check returns an error if s is not an allowed value of the flag, whose field is a *string.
func (f *Flag[V]) check(s string) error {
	if f.Words != nil && !slices.Contains(f.Words(), s) {
		words := f.Words()
		last := len(words) - 1
		return fmt.Errorf("not %s or %s", strings.Join(words[:last], ", "), words[last])
	}
	if s == "" && f.Metavar == "DIR" {
		return ErrEmpty
	}
	return nil
}

// ErrEmpty is the error for a flag whose value must not be empty.
var ErrEmpty = errors.New("an empty value, perhaps from a variable that is not set")

// ParseBool parses the value of a switch.
func ParseBool(s string) (bool, error) {
	on, err := strconv.ParseBool(s)
	if err != nil {
		err = errors.New("not true or false")
	}
	return on, err
}
