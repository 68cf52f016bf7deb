package daemon

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// promtool, which package integration runs, checks when the alerts fire, but not whether their
// series exist. The daemon must have all of these series.
func TestAlertsAreAboutMetricsThatExist(t *testing.T) {
	text, err := os.ReadFile("../../examples/daemon/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Name  string `yaml:"name"`
			Rules []struct {
				Alert       string            `yaml:"alert"`
				Expr        string            `yaml:"expr"`
				For         string            `yaml:"for"`
				Labels      map[string]string `yaml:"labels"`
				Annotations map[string]string `yaml:"annotations"`
			} `yaml:"rules"`
		} `yaml:"groups"`
	}
	decoder := yaml.NewDecoder(strings.NewReader(string(text)))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil {
		t.Fatal(err)
	}
	d, _ := started(t, configuration(t, t.TempDir(), movingLog+"  udp: {input: {listen: 'udp:127.0.0.1:0'}, output: {file: DIR/udp.log}}\n"), Options{})
	series := names(metrics(t, d))
	selector := regexp.MustCompile(`symfilter_(\w+)(?:\{(\w+)="(\w+)"\})?`)
	rules := 0
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			rules++
			selected := selector.FindAllStringSubmatch(r.Expr, -1)
			if len(selected) == 0 || r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
				t.Errorf("%s lacks a metric, a severity or a text", r.Alert)
			}
			for _, m := range selected {
				if !slices.ContainsFunc(series, func(s string) bool {
					return (s == m[1] || strings.HasPrefix(s, m[1]+"{")) && (m[2] == "" || strings.Contains(s, m[2]+"="+m[3]))
				}) {
					t.Errorf("%s: there is no %s", r.Alert, m[0])
				}
			}
		}
	}
	if rules != 10 {
		t.Errorf("%d rules, want 10", rules)
	}
}
