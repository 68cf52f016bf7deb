package cli

import "strings"

// Troff renders paragraphs, separated by empty lines, in troff format. Paragraphs that begin with
// blanks are examples.
func Troff(text string) string {
	var b strings.Builder
	for i, paragraph := range strings.Split(strings.TrimSuffix(text, "\n"), "\n\n") {
		if i > 0 {
			b.WriteString(".P\n")
		}
		if example := strings.ReplaceAll("\n"+paragraph, "\n  ", "\n"); strings.HasPrefix(paragraph, "  ") {
			b.WriteString(".nf\n" + TroffEscape(example[1:]) + "\n.fi\n")
		} else {
			b.WriteString(TroffEscape(paragraph) + "\n")
		}
	}
	return b.String()
}

// TroffEscape escapes the characters that troff would interpret: backslashes, dashes, double
// quotes, and dots and apostrophes at the start of a line.
func TroffEscape(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, `"`, `\(dq`).Replace(s)
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
