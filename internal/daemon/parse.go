package daemon

import (
	"bytes"
	"cmp"
	"encoding"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Load reads and parses a configuration file. The error is [Faults], unless the file cannot be
// read.
func Load(path string) (*Config, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	c, err := Parse(text)
	if faults, ok := err.(Faults); ok {
		for i := range faults {
			faults[i].File = path
		}
	}
	return c, err
}

// Parse reads a configuration, and sets missing keys to their defaults. The error is [Faults].
// Parse examines only the text: see [Config.Inspect] for files and folders.
func Parse(text []byte) (*Config, error) {
	p := &parser{at: make(map[string]*yaml.Node), sections: make(map[reflect.Type]*Section)}
	all := Sections()
	for i := range all {
		p.sections[all[i].of] = &all[i]
	}
	c := &Config{}
	p.presets(reflect.ValueOf(c).Elem())
	if root := p.document(text); root != nil {
		p.structure(root, reflect.ValueOf(c).Elem(), "", 0)
		p.compare(c)
	}
	if p.sort(); len(p.faults) > 0 {
		return nil, p.faults
	}
	return c, nil
}

// A parser reads one file. It records each fault, and continues.
type parser struct {
	sections map[reflect.Type]*Section
	faults   Faults
	// faults of missing keys come last: the cause is often a misspelt key
	missing Faults
	at      map[string]*yaml.Node // present keys, by path
	nodes   int
	spent   bool // the file has too many values
}

// fault records a fault at n, or of the whole file if n is nil.
func (p *parser) fault(n *yaml.Node, key, format string, args ...any) {
	f := Fault{Key: key, Problem: fmt.Sprintf(format, args...)}
	if n != nil {
		f.Line, f.Column = n.Line, n.Column
	}
	p.faults = append(p.faults, f)
}

func (p *parser) sort() {
	for _, all := range []Faults{p.faults, p.missing} {
		slices.SortStableFunc(all, func(a, b Fault) int {
			return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
		})
	}
	p.faults = append(p.faults, p.missing...)
}

// isFaulty reports whether the key itself has a fault.
func (p *parser) isFaulty(path string) bool {
	return slices.ContainsFunc(p.faults, func(f Fault) bool { return f.Key == path })
}

// yamlLine returns a regular expression for the line number at the start of a YAML error.
func yamlLine() *regexp.Regexp { return regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?`) }

// document returns the value of the only document in text, or nil after a fault.
func (p *parser) document(text []byte) *yaml.Node {
	switch {
	case len(text) > maxFile:
		p.fault(nil, "", "the file is larger than 1 MiB, which no configuration needs: name the right file")
		return nil
	case !utf8.Valid(text):
		at := 1
		for rest := text; utf8.Valid(rest[:bytes.IndexByte(rest, '\n')+1]) && bytes.IndexByte(rest, '\n') >= 0; at++ {
			rest = rest[bytes.IndexByte(rest, '\n')+1:]
		}
		p.fault(&yaml.Node{Line: at, Column: 1}, "", "not UTF-8 text: save the file in UTF-8")
		return nil
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	var first, second yaml.Node
	err := d.Decode(&first)
	if err == io.EOF || err == nil && (len(first.Content) == 0 || first.Content[0].Tag == "!!null") {
		p.fault(nil, "", "the file is empty: a configuration needs pipelines, each with an input and an output, or a service")
		return nil
	}
	if err == nil {
		if err = d.Decode(&second); err == nil {
			p.fault(&second, "", "a second document begins: a configuration is one document")
			return nil
		}
	}
	if err != io.EOF {
		m := yamlLine().FindStringSubmatch(err.Error())
		line, _ := strconv.Atoi(m[1])
		var at *yaml.Node
		if line > 0 {
			at = &yaml.Node{Line: line, Column: 1}
		}
		if tab := indentingTab(text, line); tab != nil {
			p.fault(tab, "", "a tab: YAML is indented with spaces; replace the tab with spaces")
			return nil
		}
		p.fault(at, "", "not YAML: %s", strings.TrimPrefix(err.Error(), m[0]))
		return nil
	}
	return first.Content[0]
}

// presets sets the defaults of a struct and of nested structs.
func (p *parser) presets(v reflect.Value) {
	s := p.sections[v.Type()]
	for i := range v.NumField() {
		field := v.Field(i)
		k := s.key(v.Type().Field(i).Tag.Get("yaml"))
		switch {
		case field.Kind() == reflect.Struct && p.sections[field.Type()] != nil:
			p.presets(field)
		case k != nil && k.Default != "":
			p.scalar(&yaml.Node{Kind: yaml.ScalarNode, Tag: implied(k, field), Value: k.Default}, field, k, s.full(k.Name))
		}
	}
}

func implied(k *Key, v reflect.Value) string {
	switch {
	case v.Kind() == reflect.Bool:
		return "!!bool"
	case v.Kind() == reflect.Int:
		return "!!int"
	}
	return "!!str"
}

// resolve returns n, or the node that an alias n refers to. It returns nil if the file is too large
// or too deep.
func (p *parser) resolve(n *yaml.Node, path string, depth int) *yaml.Node {
	p.nodes++
	if p.nodes > maxNodes || depth > maxDepth {
		if !p.spent {
			p.spent = true
			p.fault(n, path, "the file has more than %d values or %d levels, aliases included: remove some", maxNodes, maxDepth)
		}
		return nil
	}
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func (p *parser) structure(n *yaml.Node, v reflect.Value, path string, depth int) {
	at := n
	if n = p.resolve(n, path, depth); n == nil || p.spent {
		return
	}
	s := p.sections[v.Type()]
	if n.Kind != yaml.MappingNode {
		names := make([]string, len(s.Keys))
		for i := range s.Keys {
			names[i] = s.Keys[i].Name
		}
		if meant := s.meant(n); meant != "" {
			p.fault(at, path, "%s is given where a section is expected: write %s", describe(n), meant)
			return
		}
		p.fault(at, path, "%s is given where a section is expected: indented lines of KEY: VALUE, with the keys %s", describe(n), listed(names, "and"))
		return
	}
	fields := make(map[string]reflect.Value)
	for i := range v.NumField() {
		fields[v.Type().Field(i).Tag.Get("yaml")] = v.Field(i)
	}
	p.mapping(n, path, func(name string, key, value *yaml.Node) {
		k := s.key(name)
		if k == nil {
			p.unknown(key, path, name, s)
			return
		}
		full := join(path, name)
		p.at[full] = key
		p.value(value, fields[name], k, full, depth+1)
	})
	if p.spent {
		return
	}
	if s.Any != nil && !slices.ContainsFunc(s.Any, func(name string) bool { return p.at[join(path, name)] != nil }) {
		n, k := p.keyAt(at, path), s.key(s.Any[0])
		p.missing = append(p.missing, Fault{Line: n.Line, Column: n.Column, Key: join(path, k.Name), Problem: "missing: every configuration needs this key, or " + listed(s.Any[1:], "or") + ": " + k.Text})
	}
	for _, k := range s.Keys {
		if k.section && k.least > 0 && p.at[join(path, k.Name)] == nil {
			n := p.keyAt(at, path)
			p.missing = append(p.missing, Fault{Line: n.Line, Column: n.Column, Key: join(path, k.Name), Problem: "missing: every configuration needs this key: " + k.Text})
		}
	}
}

// keyAt returns the node of the key at path, or other if the key was not read.
func (p *parser) keyAt(other *yaml.Node, path string) *yaml.Node {
	if n := p.at[path]; n != nil {
		return n
	}
	return other
}

// mapping calls visit for each valid key in a mapping.
func (p *parser) mapping(n *yaml.Node, path string, visit func(name string, key, value *yaml.Node)) {
	lines := make(map[string]int)
	for i := 0; i+1 < len(n.Content) && !p.spent; i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Tag == "!!merge":
			p.fault(key, path, "<< is not supported: use an alias for a whole section, as in patience: *slow")
			continue
		case key.Kind != yaml.ScalarNode:
			p.fault(key, path, "a key is %s: write a name", describe(key))
			continue
		case key.Tag != "!!str":
			p.fault(key, path, "a key is %s: write a name, in quotes if necessary", describe(key))
			continue
		}
		if before, twice := lines[key.Value]; twice {
			p.fault(key, join(path, key.Value), "given twice: also in line %d; remove one", before)
			continue
		}
		lines[key.Value] = key.Line
		visit(key.Value, key, value)
	}
}

// unknown reports an unknown key, with a suggestion.
func (p *parser) unknown(n *yaml.Node, path, name string, s *Section) {
	var names, elsewhere []string
	for _, k := range s.Keys {
		names = append(names, k.Name)
	}
	if near := nearest(name, names); near != "" {
		p.fault(n, join(path, printable(name)), "unknown; did you mean %q?", near)
		return
	}
	for _, other := range Sections() {
		if other.key(name) != nil {
			where := "the file itself"
			if other.Path != "" {
				where = "the section " + other.Path
			}
			elsewhere = append(elsewhere, where)
		}
	}
	if len(elsewhere) > 0 {
		p.fault(n, join(path, printable(name)), "unknown here; this key belongs to %s", listed(elsewhere, "and"))
		return
	}
	p.fault(n, join(path, printable(name)), "unknown; the keys here are %s", listed(names, "and"))
}

// printable returns a name from the file for a message: shortened, and quoted if necessary.
func printable(name string) string {
	if len(name) > 64 {
		name = strings.ToValidUTF8(name[:64], "") + "…"
	}
	quoted := strconv.Quote(name)
	if quoted[1:len(quoted)-1] == name {
		return name
	}
	return quoted
}

func (p *parser) value(n *yaml.Node, v reflect.Value, k *Key, path string, depth int) {
	at := n
	if n = p.resolve(n, path, depth); n == nil {
		return
	}
	switch {
	case n.Tag == "!!null" && n.Kind == yaml.ScalarNode:
		p.fault(p.keyAt(at, path), path, "has no value: give it one, or remove the key")
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		p.presets(v.Elem())
		p.structure(at, v.Elem(), path, depth)
	case v.Kind() == reflect.Map:
		p.pipelines(n, v.Addr().Interface().(*map[string]Pipeline), k, path, depth)
	case k.section:
		p.structure(at, v, path, depth)
	case v.Type() == kindOf[URLs]() && n.Kind == yaml.ScalarNode:
		if n.Value != "system" {
			p.fault(at, path, "%q is neither system nor a list of URLs: write [https://…]", printable(n.Value))
			return
		}
		v.Addr().Interface().(*URLs).System = true
	case v.Type() == kindOf[URLs]():
		p.list(n, reflect.ValueOf(&v.Addr().Interface().(*URLs).List).Elem(), k, path, depth)
	case v.Kind() == reflect.Slice:
		p.list(n, v, k, path, depth)
	case n.Kind != yaml.ScalarNode:
		p.fault(at, path, "%s is given where one value is expected: %s", describe(n), k.wanted())
	default:
		p.scalar(n, v, k, path)
	}
}

func (p *parser) pipelines(n *yaml.Node, to *map[string]Pipeline, k *Key, path string, depth int) {
	if n.Kind != yaml.MappingNode {
		p.fault(n, path, "%s is given where pipelines by name are expected: NAME: {input: …, output: …}", describe(n))
		return
	}
	if len(n.Content)/2 > int(k.most) {
		p.fault(n, path, "%d pipelines; at most %d can run", len(n.Content)/2, k.most)
		return
	}
	if len(n.Content) == 0 {
		p.fault(n, path, "not given; name at least one, with an input and an output")
		return
	}
	all := make(map[string]Pipeline)
	p.mapping(n, path, func(name string, key, value *yaml.Node) {
		if !pipelineName().MatchString(name) {
			p.fault(key, join(path, printable(name)), "not a name of a pipeline: use a letter or digit, then letters, digits, . _ or - (at most 64 characters)")
		}
		full := join(path, name)
		p.at[full] = key
		var one Pipeline
		p.presets(reflect.ValueOf(&one).Elem())
		if value.Tag == "!!null" {
			p.fault(key, full, "has no value: give it an input and an output")
			return
		}
		p.structure(value, reflect.ValueOf(&one).Elem(), full, depth+1)
		all[name] = one
	})
	*to = all
}

// pipelineName returns a regular expression for names of pipelines, which occur in labels and file
// names.
func pipelineName() *regexp.Regexp { return regexp.MustCompile(namePattern) }

func (p *parser) list(n *yaml.Node, v reflect.Value, k *Key, path string, depth int) {
	switch {
	case n.Kind != yaml.SequenceNode:
		p.fault(n, path, "%s is given where a list is expected: write [%s]", describe(n), cmp.Or(printable(n.Value), "…"))
		return
	case int64(len(n.Content)) < k.least:
		p.fault(n, path, "the list is empty; add a value")
		return
	case int64(len(n.Content)) > k.most:
		p.fault(n, path, "the list has %d values; at most %d are allowed", len(n.Content), k.most)
		return
	}
	all := make([]string, 0, len(n.Content))
	for i, item := range n.Content {
		at := item
		if item = p.resolve(item, path, depth+1); item == nil {
			return
		}
		full := path + "[" + strconv.Itoa(i) + "]"
		p.at[full] = at
		if s, ok := p.text(item, full); ok {
			all = append(all, s)
		}
	}
	v.Set(reflect.ValueOf(all))
}

// text returns the string of n. A string that is empty or has a NUL is a fault.
func (p *parser) text(n *yaml.Node, path string) (string, bool) {
	switch {
	case n.Kind != yaml.ScalarNode || n.Tag == "!!null":
		p.fault(n, path, "%s is given where text is expected", describe(n))
	case n.Tag != "!!str":
		p.fault(n, path, "%s is given where text is expected: write it in quotes, %q", describe(n), printable(n.Value))
	case n.Value == "":
		p.fault(n, path, "is empty: give it a value, or remove the key")
	case strings.ContainsRune(n.Value, 0):
		p.fault(n, path, "has a NUL character, which no path or address may have")
	default:
		return n.Value, true
	}
	return "", false
}

func (p *parser) scalar(n *yaml.Node, v reflect.Value, k *Key, path string) {
	switch to := v.Addr().Interface().(type) {
	case *bool:
		if n.Tag != "!!bool" {
			p.fault(n, path, "%s is given where true or false is expected", describe(n))
			return
		}
		*to = strings.EqualFold(n.Value, "true")
	case *int:
		var number int64
		if n.Tag != "!!int" || n.Decode(&number) != nil {
			p.fault(n, path, "%s is given where %s is expected", describe(n), k.wanted())
			return
		}
		if p.within(n, number, k, path) {
			*to = int(number)
		}
	case *string:
		s, ok := p.text(n, path)
		if ok && len(k.Words) > 0 && !slices.Contains(k.Words, s) {
			if near := nearest(s, k.Words); near != "" {
				p.fault(n, path, "%q is not one of %s; did you mean %q?", printable(s), listed(k.Words, "and"), near)
			} else {
				p.fault(n, path, "%q is not one of %s", printable(s), listed(k.Words, "and"))
			}
			return
		}
		*to = s
	case encoding.TextUnmarshaler:
		if n.Tag != "!!str" && n.Tag != "!!int" {
			p.fault(n, path, "%s is given where %s is expected", describe(n), k.wanted())
			return
		}
		if err := to.UnmarshalText([]byte(n.Value)); err != nil {
			p.fault(n, path, "%q is not %s", printable(n.Value), k.wanted())
			return
		}
		if v.CanInt() {
			p.within(n, v.Int(), k, path)
		}
	}
}

func (p *parser) within(n *yaml.Node, number int64, k *Key, path string) bool {
	if k.least == 0 && k.most == 0 || number >= k.least && number <= k.most {
		return true
	}
	p.fault(n, path, "%s is out of range: from %s to %s", printable(n.Value), k.amount(k.least), k.amount(k.most))
	return false
}

// amount returns n, a bound of the key's value, in the form that the configuration file uses, such
// as 64MiB or 10s.
func (k *Key) amount(n int64) string {
	switch k.kind {
	case kindOf[Size]():
		for _, u := range []struct {
			bytes int64
			name  string
		}{{gib, "GiB"}, {mib, "MiB"}, {kib, "KiB"}} {
			if n >= u.bytes && n%u.bytes == 0 {
				return strconv.FormatInt(n/u.bytes, 10) + u.name
			}
		}
	case kindOf[Duration]():
		text := time.Duration(n).String()
		text = strings.TrimSuffix(text, "m0s") + strings.Repeat("m", strings.Count(text, "m0s"))
		return strings.TrimSuffix(text, "h0m") + strings.Repeat("h", strings.Count(text, "h0m"))
	}
	return strings.TrimSpace(strconv.FormatInt(n, 10) + " " + k.Unit)
}

func (k *Key) wanted() string {
	switch k.kind {
	case kindOf[Size]():
		return "a number of bytes, such as 4096, 64KiB, 512MiB or 1GiB"
	case kindOf[Duration]():
		return "a duration, such as 500ms, 10s or 1h"
	case kindOf[Mode]():
		return "the permissions of a file in octal, from 1 to 777, such as 0640"
	case kindOf[StartAt]():
		return "beginning, end, or a duration such as 1h"
	}
	if k.kind.Kind() == reflect.Int {
		return "a number of " + k.Unit
	}
	return k.Kind()
}

func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a section"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.Tag {
	case "!!null":
		return "nothing"
	case "!!int", "!!float":
		return "the number " + printable(n.Value)
	case "!!bool":
		return printable(n.Value)
	case "!!str":
		return strconv.Quote(printable(n.Value))
	}
	return "a value of the type " + printable(n.Tag)
}
