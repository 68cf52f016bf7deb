package cli

import (
	"fmt"
	"strings"
)

// ManPage renders the tables as a manual page in troff format: the same bytes for the same version
// and date.
func (p *Program[V]) ManPage(version, date string) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 %q %q\n.nh\n.ad l\n.SH NAME\n%s \\- %s\n.SH SYNOPSIS\n.nf\n",
		strings.ToUpper(p.Name), date, TroffEscape(p.Name+" "+version), p.Name, p.About)
	for _, cmd := range p.Commands {
		b.WriteString(TroffEscape(p.Usage(cmd)) + "\n")
	}
	b.WriteString(".fi\n.SH DESCRIPTION\n" + Troff(p.Commands[0].Text) + ".SH COMMANDS\n")
	for _, cmd := range p.Commands[1:] {
		b.WriteString(".SS " + TroffEscape(p.Usage(cmd)) + "\n" + Troff(cmd.Text))
	}
	b.WriteString(".SH OPTIONS\n")
	for i := range p.Groups {
		g := &p.Groups[i]
		b.WriteString(".SS " + TroffEscape(g.Title) + "\n")
		for j := range g.Flags {
			f := &g.Flags[j]
			b.WriteString(".TP\n.B " + TroffEscape(f.Spelling()) + "\n" + TroffEscape(f.FullText()+f.remarks()) + "\n")
		}
		if g.Note != "" {
			b.WriteString(".P\n" + TroffEscape(g.Note) + "\n")
		}
	}
	for _, t := range p.Topics() {
		if t.Section != "" {
			b.WriteString(".SH " + t.Section + "\n" + Troff(t.Text))
		}
	}
	for _, section := range p.Sections {
		b.WriteString(".SH " + section.Title + "\n" + Troff(section.Text))
	}
	return b.String() + ".SH SEE ALSO\n.BR " + strings.Join(p.SeeAlso, ",\n.BR ") + "\n"
}
