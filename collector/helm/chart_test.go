package helm

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/lint/support"
	"helm.sh/helm/v3/pkg/strvals"
)

// Names of the values that the tests render. testdata has NAME.values.yaml, the manifests in
// NAME.yaml, and Helm's notes in NAME.notes.txt.
var values = []string{"bare", "default", "gateway", "logs", "profiles"}

// render returns the manifests of `helm template`, and the notes of `helm install`.
func render(v chartutil.Values) (manifests, notes string, err error) {
	c, err := loader.Load("symfilter")
	if err != nil {
		return "", "", err
	}
	install := action.NewInstall(new(action.Configuration))
	install.ClientOnly, install.DryRun = true, true
	install.ReleaseName, install.Namespace = "symfilter", "symfilter"
	install.KubeVersion = &chartutil.KubeVersion{Version: "v1.35.0", Major: "1", Minor: "35"}
	r, err := install.Run(c, v)
	if err != nil {
		return "", "", err
	}
	return r.Manifest, r.Info.Notes, nil
}

func valuesOf(t *testing.T, name string) chartutil.Values {
	t.Helper()
	v, err := chartutil.ReadValuesFile(filepath.Join("testdata", name+".values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// The manifests must equal the files in testdata, with which collector/endtoend runs a Collector.
// UPDATE=1 writes the files.
func TestManifestsAreThoseThatAreCommitted(t *testing.T) {
	for _, name := range values {
		manifests, notes, err := render(valuesOf(t, name))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for file, text := range map[string]string{name + ".yaml": manifests, name + ".notes.txt": notes} {
			path := filepath.Join("testdata", file)
			if os.Getenv("UPDATE") != "" {
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Error(err)
			} else if diff := cmp.Diff(string(want), text); diff != "" {
				t.Errorf("%s (-committed +rendered; UPDATE=1 go test writes it):\n%s", file, diff)
			}
		}
	}
}

// helm lint --strict must report nothing.
func TestTheChartIsWellFormed(t *testing.T) {
	for _, name := range values {
		lint := action.NewLint()
		lint.Strict, lint.Namespace = true, "symfilter"
		lint.KubeVersion = &chartutil.KubeVersion{Version: "v1.35.0", Major: "1", Minor: "35"}
		r := lint.Run([]string{"symfilter"}, valuesOf(t, name))
		for _, err := range r.Errors {
			t.Errorf("%s: %v", name, err)
		}
		for _, m := range r.Messages {
			if m.Severity > support.InfoSev {
				t.Errorf("%s: %s", name, m)
			}
		}
	}
}

// Each value in values.yaml must be used. If it is removed from a file of testdata that sets it,
// the manifests or the notes must change.
func TestEachValueIsUsed(t *testing.T) {
	defaults, err := chartutil.ReadValuesFile(filepath.Join("symfilter", "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range leaves("", defaults) {
		set, used := false, false
		for _, name := range values {
			v := valuesOf(t, name)
			before, beforeNotes, err := render(v)
			if err != nil {
				t.Fatal(name, err)
			}
			if !remove(v, strings.Split(path, ".")) {
				continue
			}
			set = true
			after, afterNotes, err := render(v)
			used = used || err != nil || before != after || beforeNotes != afterNotes
		}
		switch {
		case !set:
			t.Errorf("no file of testdata sets %s", path)
		case !used:
			t.Errorf("%s changes nothing", path)
		}
	}
}

// leaves returns the paths of all values that are not sections, such as image.tag. Empty maps,
// which users fill, and resources, which has keys of Kubernetes, are values.
func leaves(prefix string, v map[string]any) (all []string) {
	for _, key := range slices.Sorted(maps.Keys(v)) {
		section, ok := v[key].(map[string]any)
		if ok && len(section) > 0 && key != "resources" {
			all = append(all, leaves(prefix+key+".", section)...)
		} else {
			all = append(all, prefix+key)
		}
	}
	return all
}

// remove removes the value at a path, and reports whether the value existed.
func remove(v map[string]any, path []string) bool {
	if len(path) > 1 {
		section, ok := v[path[0]].(map[string]any)
		return ok && remove(section, path[1:])
	}
	_, ok := v[path[0]]
	delete(v, path[0])
	return ok
}

// Wrong values must be refused before anything is installed, with a message that names them.
// Changes have the syntax of --set.
func TestWrongValuesAreRefused(t *testing.T) {
	for change, want := range map[string]string{
		"image.repository=":                    "--set image.repository=REPOSITORY",
		"image.pullPolicy=Sometimes":           "pullPolicy",
		"image.repositry=x":                    "repositry",
		"signals.logs=yes":                     "logs",
		"symbols.debuginfodURLs={debuginfod}":  "debuginfodURLs",
		"symbols.maxMemory=1Gi":                "maxMemory",
		"symbols.nodePath=usr":                 "nodePath",
		"backend.endpoint=http://backend:4318": "endpoint",
		"gateway.replicas=0":                   "replicas",
		"agent.statePath=state":                "statePath",
		"signals.logs=false,signals.traces=false,signals.profiles=false": "signals",
	} {
		v := valuesOf(t, "default")
		if err := strvals.ParseInto(change, v); err != nil {
			t.Fatal(err)
		}
		if _, _, err := render(v); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want a message with %q", change, err, want)
		}
	}
}
