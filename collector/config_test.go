package collector

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
)

// configOf reads a configuration of testdata/config.yaml.
func configOf(t *testing.T, id string) *Config {
	t.Helper()
	cm, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return unmarshal(t, cm, id)
}

func unmarshal(t *testing.T, cm *confmap.Conf, path string) *Config {
	t.Helper()
	sub, err := cm.Sub(path)
	if err != nil {
		t.Fatal(err)
	}
	c := NewFactory().CreateDefaultConfig().(*Config)
	if err := sub.Unmarshal(c); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestConfig(t *testing.T) {
	storage := component.MustNewID("file_storage")
	locate := createDefaultConfig().(*Config)
	locate.Mode = modeLocate
	for id, want := range map[string]*Config{
		"symfilter":        createDefaultConfig().(*Config),
		"symfilter/locate": locate,
		"symfilter/all": {
			Key: []string{"k8s.pod.uid", "k8s.container.name"}, BodyFields: []string{"message"}, Attributes: []string{"exception.stacktrace", "stack"},
			Mode: modeResolve, Frames: true, EmitLate: true, Patience: Patience{Local: time.Second, Servers: 3 * time.Second},
			MaxContexts: 500, MaxContextBytes: 64 << 20, IdleTimeout: 10 * time.Minute, Storage: &storage,
			Symbols: Symbols{
				SymbolPaths: []string{"/srv/symbols"}, IDsFiles: []string{"/srv/ids.txt"}, BuildIDDirectories: []string{"/srv/build-id"},
				DebugFileDirectories: []string{"/usr/lib/debug", "/srv/debug"}, DebuginfodURLs: []string{"https://debuginfod.example"},
				CacheDirectory: "/var/cache/symfilter", MaxMemory: 1 << 30, ModulePaths: true,
			},
		},
	} {
		got := configOf(t, id)
		if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Config{}, Patience{}, Symbols{}), cmpopts.EquateComparable(component.ID{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", id, diff)
		}
		if err := confmap.Validate(got); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
}

func TestMistakesInTheConfiguration(t *testing.T) {
	for id, want := range map[string]string{
		"symfilter/bad": `mode must be resolve or locate, not "guess"
patience::local must be from 0s to 30s, not 31s: each batch may wait that long
patience::servers must be from 0s to 30s, not -1s: each batch may wait that long
max_contexts must be positive, not 0
max_context_bytes must be positive, not 0
idle_timeout must be at least 1s, not 1ms
symbols::max_memory must be at least 16MiB, not 1
symbols::debuginfod_urls: "ftp://debuginfod.example" is not an http or https URL
symbols::debuginfod_urls requires symbols::cache_directory, the folder for downloaded files`,
		"symfilter/bad_late": "emit_late requires mode resolve: mode locate looks up no names, so no names arrive late",
	} {
		err := confmap.Validate(configOf(t, id))
		if err == nil {
			t.Errorf("%s is accepted", id)
		} else if diff := cmp.Diff(want, err.Error()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", id, diff)
		}
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1": 1, "17B": 17, "2KiB": 2048, "3 MiB": 3 << 20, "1GiB": 1 << 30,
		"": -1, "MiB": -1, "1MB": -1, "1.5GiB": -1, "-1": -1, "9000000000GiB": -1, "1iB": -1,
	} {
		var got ByteSize
		if err := got.UnmarshalText([]byte(text)); err != nil {
			got = -1
		}
		if int64(got) != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}

// The configurations in the folder dist must be valid for the processor. TestExamplesAreValid, in
// the folder endtoend, runs the Collector's own check of the files.
func TestConfigurationsOfTheDistribution(t *testing.T) {
	for _, name := range []string{"agent", "edge", "gateway", "profiles"} {
		cm, err := confmaptest.LoadConf(filepath.Join("dist", name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		c := unmarshal(t, cm, "processors::symfilter")
		for i, url := range c.Symbols.DebuginfodURLs {
			c.Symbols.DebuginfodURLs[i] = strings.Replace(url, "${env:DEBUGINFOD}", "http://debuginfod.example", 1)
		}
		if err := confmap.Validate(c); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
