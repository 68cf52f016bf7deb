package daemon

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/testenv"
)

// keysPage returns the page of docs with all keys.
func keysPage() string {
	var b strings.Builder
	b.WriteString("# symfilterd: configuration\n\n" + testenv.Wrapped(keysText) +
		"\n\n<!-- Written from internal/daemon/keys.go: make docs -->\n")
	for _, s := range Sections() {
		title := s.Path
		if title == "" {
			title = "The file"
		}
		b.WriteString("\n## " + title + "\n\n" + testenv.Wrapped(s.Text) + "\n")
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
	return b.String()
}

const keysText = "All keys of the file of `--config`, with their defaults, as `symfilterd help configuration` prints them. A size is a " +
	"number of bytes, also as `64KiB`, `512MiB`, `1GiB`; a duration is `500ms`, `10s`, `1h30m`. A section can be used again by an alias of " +
	"YAML (`&slow`, `*slow`). [Running symfilterd](../operations.md) has the rest."

func quoted(names []string) (all []string) {
	for _, name := range names {
		all = append(all, "`"+name+"`")
	}
	return all
}

// The page in docs must have the keys of the table. With UPDATE=1, the test first writes the page.
func TestTheReferenceHasTheKeys(t *testing.T) {
	const page = "docs/reference/symfilterd-configuration.md"
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(filepath.Join("..", "..", filepath.FromSlash(page)), []byte(keysPage()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(keysPage(), repositoryFile(t, page)); diff != "" {
		t.Errorf("%s is out of date, make docs writes it: want (-), got (+):\n%s", page, diff)
	}
}

// repositoryFile returns the text of a file, named relative to the root of the repository.
func repositoryFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// found returns the first group of each match of an expression, sorted.
func found(text, expression string) (all []string) {
	for _, m := range regexp.MustCompile(expression).FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	slices.Sort(all)
	return all
}

// firstCells returns the first cell of each table row in a page of docs, each on a line.
func firstCells(t *testing.T, page string) string {
	t.Helper()
	return strings.Join(found(repositoryFile(t, "docs/"+page), `(?m)^\| ([^|]*) \|`), "\n")
}

func TestOperatorsReadWhatThereIs(t *testing.T) {
	metrics := found(repositoryFile(t, "internal/daemon/metrics.go"), `(?:newSeries\(\w+, "|"symfilter_)(\w+)"`)
	if diff := cmp.Diff(metrics, found(firstCells(t, "reference/symfilterd-metrics.md"), "`symfilter_(\\w+)`")); diff != "" {
		t.Errorf("docs/reference/symfilterd-metrics.md, want (-), got (+):\n%s", diff)
	}
	d, _ := started(t, configuration(t, t.TempDir(), idle), Options{Stdin: blocked(t)})
	families, err := d.registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if !slices.Contains(metrics, strings.TrimPrefix(f.GetName(), "symfilter_")) {
			t.Errorf("metrics.go does not name the metric %s", f.GetName())
		}
	}

	alerts := found(repositoryFile(t, "examples/daemon/alerts.yaml"), `- alert: (\w+)`)
	if diff := cmp.Diff(alerts, found(firstCells(t, "operations.md"), `\b(Symfilter[A-Z]\w+)`)); diff != "" {
		t.Errorf("docs/operations.md, want (-), got (+):\n%s", diff)
	}
	if len(families) < 10 || len(alerts) < 5 {
		t.Errorf("%d metrics, %d alerts", len(families), len(alerts))
	}
}
