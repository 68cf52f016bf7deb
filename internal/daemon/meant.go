package daemon

import (
	"bytes"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// meant returns a section that the user probably meant by n, a text or a list in place of the
// section. It returns "" if the meaning is unclear.
func (s *Section) meant(n *yaml.Node) string {
	input, output := s.of == kindOf[Input](), s.of == kindOf[Output]()
	if input && n.Kind == yaml.SequenceNode {
		return "{files: […]}"
	}
	text := n.Value
	if !input && !output || n.Kind != yaml.ScalarNode || n.Tag != "!!str" || text == "" || printable(text) != text {
		return ""
	}
	quoted := text
	if strings.ContainsAny(text, "*?[]{},:#&!|>'%@` ") { // YAML may interpret these characters within brackets
		quoted = `"` + text + `"`
	}
	network, _, _ := strings.Cut(text, ":")
	switch isAddress := slices.Contains([]string{"tcp", "unix", "systemd", "udp", "unixgram"}, network); {
	case input && text == "stdin":
		return "{stdin: true}"
	case input && isAddress:
		return "{listen: " + quoted + "}"
	case input:
		return "{files: [" + quoted + "]}"
	case text == "stdout":
		return "{stdout: text}"
	case text == "peer":
		return "{peer: true}"
	case isAddress:
		return "{connect: " + quoted + "}"
	}
	return "{file: " + quoted + "}"
}

// indentingTab returns the position of the first tab in the indentation of the line, or of any line
// if line is 0. Without an indenting tab, it returns nil.
func indentingTab(text []byte, line int) *yaml.Node {
	n := 0
	for one := range bytes.Lines(text) {
		n++
		rest := bytes.TrimLeft(one, " ")
		if (line == 0 || n == line) && bytes.HasPrefix(rest, []byte("\t")) {
			return &yaml.Node{Line: n, Column: len(one) - len(rest) + 1}
		}
	}
	return nil
}
