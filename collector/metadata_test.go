package collector

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"

	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/testenv"
)

// A description has the members of a metadata.yaml that this test uses.
type description struct {
	DisplayName   string `mapstructure:"display_name"`
	Type          string `mapstructure:"type"`
	Description   string `mapstructure:"description"`
	GithubProject string `mapstructure:"github_project"`
	Status        struct {
		Class         string              `mapstructure:"class"`
		Stability     map[string][]string `mapstructure:"stability"`
		Distributions []string            `mapstructure:"distributions"`
		Codeowners    *struct {
			Active     []string `mapstructure:"active"`
			SeekingNew bool     `mapstructure:"seeking_new"`
		} `mapstructure:"codeowners"`
	} `mapstructure:"status"`
	Attributes map[string]attributeOf `mapstructure:"attributes"`
	Telemetry  struct {
		Metrics map[string]metricOf `mapstructure:"metrics"`
	} `mapstructure:"telemetry"`
}

type attributeOf struct {
	Name        string   `mapstructure:"name_override"`
	Description string   `mapstructure:"description"`
	Enum        []string `mapstructure:"enum"`
}

type metricOf struct {
	Description string   `mapstructure:"description"`
	Unit        string   `mapstructure:"unit"`
	Stability   string   `mapstructure:"stability"`
	Attributes  []string `mapstructure:"attributes"`
	Sum         *struct {
		ValueType string `mapstructure:"value_type"`
		Monotonic bool   `mapstructure:"monotonic"`
	} `mapstructure:"sum"`
	Histogram *struct {
		ValueType string `mapstructure:"value_type"`
	} `mapstructure:"histogram"`
}

func descriptionIn(t *testing.T, folder string) *description {
	t.Helper()
	cm, err := confmaptest.LoadConf(filepath.Join(folder, "metadata.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	d := new(description)
	if err := cm.Unmarshal(d, confmap.WithIgnoreUnused()); err != nil {
		t.Fatal(err)
	}
	return d
}

// The status in README.md and the page documentation.md must be as mdatagen would write them.
// TestTheFormIsThatOfMdatagen checks this form. With UPDATE=1, the test writes both.
func TestTheReferenceHasTheMetadata(t *testing.T) {
	d := descriptionIn(t, ".")
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(readme), statusEnd)
	if !ok {
		t.Fatal("README.md has no status")
	}
	for name, want := range map[string]string{"README.md": d.status("symfilter") + rest, "documentation.md": d.documentation()} {
		if os.Getenv("UPDATE") != "" {
			if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s (-metadata.yaml +file; make docs writes it):\n%s", name, diff)
		}
	}
}

// The methods of description must produce the text that mdatagen wrote for the releases of other
// components.
func TestTheFormIsThatOfMdatagen(t *testing.T) {
	folder := func(module string) string {
		cmd := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module)
		cmd.Dir = "dist"
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(out))
	}
	batch, receivers := folder("go.opentelemetry.io/collector/processor/batchprocessor"), folder("go.opentelemetry.io/collector/receiver/receiverhelper")
	storage := folder("github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage")
	if batch == "" || receivers == "" || storage == "" {
		testenv.Missing(t, "the modules of dist, which go build in dist downloads")
	}
	read := func(folder, name string) string {
		data, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	status, _, _ := strings.Cut(read(batch, "README.md"), statusEnd)
	if diff := cmp.Diff(status+statusEnd, descriptionIn(t, batch).status("batch")); diff != "" {
		t.Errorf("the status of batchprocessor (-mdatagen +test):\n%s", diff)
	}
	// only the row of code owners and the description are compared
	own := descriptionIn(t, storage).status("filestorage")
	for line := range strings.Lines(read(storage, "README.md")) {
		if strings.HasPrefix(line, "| [Code Owners]") && !strings.Contains(own, line) || strings.HasPrefix(line, "The File Storage Extension can") && !strings.Contains(own, "\n\n"+line+"\n| Status") {
			t.Errorf("the status of filestorage has no line %s:\n%s", line, own)
		}
	}
	for _, folder := range []string{batch, receivers} {
		_, want, _ := strings.Cut(read(folder, "documentation.md"), "\n")
		want, _, _ = strings.Cut(want, "\n## Feature Gates\n")
		_, got, _ := strings.Cut(descriptionIn(t, folder).documentation(), "\n")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("documentation.md of %s (-mdatagen +test):\n%s", filepath.Base(folder), diff)
		}
	}
}

const (
	statusBegin = "<!-- status autogenerated section -->\n"
	statusEnd   = "<!-- end autogenerated section -->"
	stabilities = "https://github.com/open-telemetry/opentelemetry-collector/blob/main/docs/component-stability.md#"
	releases    = "https://github.com/open-telemetry/opentelemetry-collector-releases/tree/main/distributions/otelcol"
	ownership   = "https://github.com/open-telemetry/opentelemetry-collector-contrib/blob/main/CONTRIBUTING.md#becoming-a-code-owner"
)

// status returns the section that mdatagen writes into README.md. short is the name of the
// component's folder without its class.
func (d *description) status(short string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s# %s\n", statusBegin, d.DisplayName)
	if d.Description != "" {
		fmt.Fprintf(&b, "\n%s\n\n", d.Description)
	}
	b.WriteString("| Status        |           |\n| ------------- |-----------|\n")
	title := "Stability"
	levels := slices.Sorted(maps.Keys(d.Status.Stability))
	for _, level := range levels {
		fmt.Fprintf(&b, "| %-9s     | [%s]: %s   |\n", title, level, strings.Join(d.Status.Stability[level], ", "))
		title = ""
	}
	fmt.Fprintf(&b, "| Distributions | [%s] |\n", strings.Join(d.Status.Distributions, "], ["))
	label := d.Status.Class + "%2F" + short
	b.WriteString("| Issues        |")
	for _, of := range []struct{ title, is, color string }{{"Open", "open", "orange"}, {"Closed", "closed", "blue"}} {
		fmt.Fprintf(&b, " [![%s issues](https://img.shields.io/github/issues-search/%s?query=is%%3Aissue%%20is%%3A%s%%20label%%3A%s%%20&label=%s&color=%s&logo=opentelemetry)]",
			of.title, d.GithubProject, of.is, label, of.is, of.color)
		fmt.Fprintf(&b, "(https://github.com/%s/issues?q=is%%3A%s+is%%3Aissue+label%%3A%s)", d.GithubProject, of.is, label)
	}
	b.WriteString(" |\n")
	if owners := d.Status.Codeowners; owners != nil {
		var links []string
		for _, name := range owners.Active {
			links = append(links, fmt.Sprintf("[@%s](https://www.github.com/%s)", name, name))
		}
		seeking := ""
		if owners.SeekingNew {
			seeking = `\| Seeking more code owners! `
		}
		fmt.Fprintf(&b, "| [Code Owners](%s)    | %s %s|\n", ownership, strings.Join(links, ", "), seeking)
	}
	b.WriteString("\n")
	for _, level := range levels {
		fmt.Fprintf(&b, "[%s]: %s%s\n", level, stabilities, level)
	}
	for _, name := range d.Status.Distributions {
		suffix := "-" + name
		if name == "core" {
			suffix = ""
		}
		fmt.Fprintf(&b, "[%s]: %s%s\n", name, releases, suffix)
	}
	return b.String() + statusEnd
}

// documentation returns the page of metrics that mdatagen writes.
func (d *description) documentation() string {
	var b strings.Builder
	fmt.Fprintf(&b, "[comment]: <> (Written from metadata.yaml in the form of mdatagen: make docs)\n\n# %s\n\n## Internal Telemetry\n\n", d.Type)
	b.WriteString("The following telemetry is emitted by this component.\n")
	for _, name := range slices.Sorted(maps.Keys(d.Telemetry.Metrics)) {
		m := d.Telemetry.Metrics[name]
		heads, row := []string{"Unit", "Metric Type", "Value Type"}, []string{m.Unit}
		if m.Sum != nil {
			heads = append(heads, "Monotonic")
			row = append(row, "Sum", title(m.Sum.ValueType), fmt.Sprint(m.Sum.Monotonic))
		} else {
			row = append(row, "Histogram", title(m.Histogram.ValueType))
		}
		fmt.Fprintf(&b, "\n### otelcol_%s\n\n%s\n\n", name, m.Description)
		table(&b, append(heads, "Stability"), append(row, title(m.Stability)))
		if len(m.Attributes) == 0 {
			continue
		}
		b.WriteString("\n#### Attributes\n\n")
		var rows [][]string
		for _, key := range m.Attributes {
			a := d.Attributes[key]
			values := "Any Str"
			if len(a.Enum) > 0 {
				values = "Str: ``" + strings.Join(a.Enum, "``, ``") + "``"
			}
			if a.Name != "" {
				key = a.Name
			}
			rows = append(rows, []string{key, a.Description, values, "-"})
		}
		table(&b, []string{"Name", "Description", "Values", "Semantic Convention"}, rows...)
	}
	return b.String()
}

func title(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

func table(b *strings.Builder, heads []string, rows ...[]string) {
	line := func(cells []string) { fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | ")) }
	line(heads)
	dashes := make([]string, len(heads))
	for i, head := range heads {
		dashes[i] = strings.Repeat("-", len(head))
	}
	line(dashes)
	for _, row := range rows {
		line(row)
	}
}

// The stability and the values of attributes must be equal in metadata.yaml and in the code.
func TestMetadataIsThatOfTheCode(t *testing.T) {
	d := descriptionIn(t, ".")
	f := NewFactory()
	got := map[string]component.StabilityLevel{"logs": f.LogsStability(), "traces": f.TracesStability(), "profiles": f.ProfilesStability()}
	for level, signals := range d.Status.Stability {
		for _, signal := range signals {
			if !strings.EqualFold(got[signal].String(), level) {
				t.Errorf("%s are %s, in metadata.yaml %s", signal, got[signal], level)
			}
			delete(got, signal)
		}
	}
	if len(got) > 0 {
		t.Errorf("metadata.yaml lacks the stability of %v", got)
	}
	var results []string
	for r := range filter.Results {
		results = append(results, r.String())
	}
	for key, want := range map[string][]string{"element_result": results, "location_result": locationResultNames[:]} {
		if diff := cmp.Diff(want, d.Attributes[key].Enum); diff != "" {
			t.Errorf("%s (-code +metadata.yaml):\n%s", key, diff)
		}
	}
}
