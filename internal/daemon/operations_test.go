package daemon

import (
	"cmp"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/testenv"
)

// operations is the document for operators.
const operations = "../../docs/operations.md"

// tables returns the reference of all keys as tables of Markdown.
func tables() string {
	var b strings.Builder
	for _, s := range Sections() {
		b.WriteString("\n### " + cmp.Or(s.Path, "The file") + "\n\n" + testenv.Wrapped(s.Text) + "\n")
		if s.One != nil {
			b.WriteString("Exactly one of " + listed(quoted(s.One), "and") + " is given.\n")
		}
		b.WriteString("\n| key | value | default | |\n|---|---|---|---|\n")
		for _, k := range s.Keys {
			value := k.Kind()
			if r := k.Range(); r != "" {
				value += ", " + r
			}
			preset := k.also
			if k.Default != "" {
				preset = "`" + k.Default + "`"
			}
			text := k.Text
			if k.With != nil {
				text += " (with " + listed(quoted(k.With), "or") + ")"
			}
			b.WriteString("| `" + k.Name + "` | " + value + " | " + preset + " | " + text + " |\n")
		}
	}
	return b.String() + "\n"
}

func quoted(names []string) (all []string) {
	for _, name := range names {
		all = append(all, "`"+name+"`")
	}
	return all
}

// The document has the keys, metrics and alerts that there are; UPDATE=1 writes the keys.
func TestOperatorsReadWhatThereIs(t *testing.T) {
	b, err := os.ReadFile(operations)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	before, rest, found := strings.Cut(text, "<!-- keys -->\n")
	_, after, ended := strings.Cut(rest, "<!-- end -->\n")
	if !found || !ended {
		t.Fatal("no marks for the reference")
	}
	want := before + "<!-- keys -->\n" + tables() + "<!-- end -->\n" + after
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(operations, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		text = want
	}
	if text != want {
		t.Error("docs/operations.md has not the keys of the table: UPDATE=1 go test ./internal/daemon writes them")
	}

	d, _ := started(t, configuration(t, t.TempDir(), idle), Options{Stdin: blocked(t)})
	families, err := d.registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if !strings.Contains(text, "`"+f.GetName()+"`") {
			t.Errorf("docs/operations.md has not the metric %s", f.GetName())
		}
	}
	alerts, err := os.ReadFile("../../examples/daemon/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	all := regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(string(alerts), -1)
	for _, m := range all {
		if !strings.Contains(text, "\n| "+m[1]+" |") {
			t.Errorf("docs/operations.md has not the alert %s", m[1])
		}
	}
	if len(families) < 10 || len(all) < 5 {
		t.Errorf("%d metrics, %d alerts", len(families), len(all))
	}
}
