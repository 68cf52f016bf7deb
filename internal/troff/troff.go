// Package troff writes text in the language of manual pages.
package troff

import "strings"

// Text renders paragraphs, which empty lines separate. Those that begin with blanks are examples.
func Text(text string) string {
	var b strings.Builder
	for i, paragraph := range strings.Split(strings.TrimSuffix(text, "\n"), "\n\n") {
		if i > 0 {
			b.WriteString(".P\n")
		}
		if example := strings.ReplaceAll("\n"+paragraph, "\n  ", "\n"); strings.HasPrefix(paragraph, "  ") {
			b.WriteString(".nf\n" + Escape(example[1:]) + "\n.fi\n")
		} else {
			b.WriteString(Escape(paragraph) + "\n")
		}
	}
	return b.String()
}

// Escape escapes what troff would interpret: backslashes, dashes, and dots and quotes at the start of
// a line.
func Escape(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, `"`, `\(dq`).Replace(s)
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
