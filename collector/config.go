package collector

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
)

// Modes of a processor.
const (
	modeResolve = "resolve" // frames get functions, files and lines
	modeLocate  = "locate"  // frames get module, offset and build ID, for a later processor
)

// maxPatience bounds the wait of a batch for debug files. Senders give up after some seconds,
// and send the batch again.
const maxPatience = 30 * time.Second

// Config is the configuration of a processor.
type Config struct {
	// Key names the attributes that identify the processes of a log. Each is taken from the
	// resource, or else from the record. Records without any of these attributes are identified by
	// all attributes of their resource.
	Key []string `mapstructure:"key"`

	// BodyFields are tried in order if the body is a map. The first field with a string is
	// filtered.
	BodyFields []string `mapstructure:"body_fields"`

	// Attributes names attributes of records that are filtered in addition to the body. A value
	// that begins with {{{reset}}} has a separate context.
	Attributes []string `mapstructure:"attributes"`

	// Mode is resolve or locate.
	Mode string `mapstructure:"mode"`

	// Frames adds the attribute symfilter.frames, with the result for each address.
	Frames bool `mapstructure:"frames"`

	// EmitLate sends one more record if a debug file arrives after the records that needed it.
	EmitLate bool `mapstructure:"emit_late"`

	Patience Patience `mapstructure:"patience"`

	// MaxContexts bounds the number of remembered processes, and MaxContextBytes their memory.
	MaxContexts     int      `mapstructure:"max_contexts"`
	MaxContextBytes ByteSize `mapstructure:"max_context_bytes"`

	// IdleTimeout is the time without records after which a process is forgotten.
	IdleTimeout time.Duration `mapstructure:"idle_timeout"`

	// Storage names the storage extension that keeps contexts across restarts; nil for none.
	Storage *component.ID `mapstructure:"storage"`

	Symbols Symbols `mapstructure:"symbols"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// Patience bounds the wait of a batch for debug files: see [filter.Patience]. If both times are
// zero, nothing is opened, inflated or parsed while a batch waits.
type Patience struct {
	Local   time.Duration `mapstructure:"local"`
	Servers time.Duration `mapstructure:"servers"`

	// prevent unkeyed literal initialization
	_ struct{}
}

func (p *Patience) longest() time.Duration { return max(p.Local, p.Servers) }

// Symbols lists the sources of debug files, searched in the order of the fields, servers last.
type Symbols struct {
	SymbolPaths          []string `mapstructure:"symbol_paths"`
	IDsFiles             []string `mapstructure:"ids_files"`
	BuildIDDirectories   []string `mapstructure:"build_id_directories"`
	DebugFileDirectories []string `mapstructure:"debug_file_directories"`
	DebuginfodURLs       []string `mapstructure:"debuginfod_urls"`

	// CacheDirectory keeps downloads, and data that can be made again: indexes of debug files,
	// inflated sections. If it is empty, nothing is kept.
	CacheDirectory string `mapstructure:"cache_directory"`

	// MaxMemory bounds the memory of all debug files and rendered frames.
	MaxMemory ByteSize `mapstructure:"max_memory"`

	// ModulePaths opens files at the paths in logs and profiles.
	ModulePaths bool `mapstructure:"module_paths"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// ByteSize is a number of bytes. A configuration may write it with a unit: 512MiB.
type ByteSize int64

// UnmarshalText reads a number with the unit B, KiB, MiB or GiB, or without a unit.
func (b *ByteSize) UnmarshalText(text []byte) error {
	s := strings.TrimSpace(string(text))
	digits := strings.TrimRight(s, "BKMGi ")
	n, err := strconv.ParseInt(digits, 10, 64)
	shift, ok := map[string]int{"": 0, "B": 0, "KiB": 10, "MiB": 20, "GiB": 30}[strings.TrimSpace(s[len(digits):])]
	if err != nil || !ok || n < 0 || n > math.MaxInt64>>shift {
		return fmt.Errorf("%q is not a size: write a number of bytes, or a number with the unit KiB, MiB or GiB, as in 256MiB", s)
	}
	*b = ByteSize(n << shift)
	return nil
}

func createDefaultConfig() component.Config {
	return &Config{
		Key: []string{
			"k8s.pod.uid", "k8s.container.name", "k8s.container.restart_count", "container.id", "service.instance.id",
			"host.name", "log.file.path", "process.pid", "log.iostream",
		},
		BodyFields:      []string{"message", "log", "MESSAGE"},
		Attributes:      []string{"exception.stacktrace"},
		Mode:            modeResolve,
		Patience:        Patience{Local: 2 * time.Second},
		MaxContexts:     10_000,
		MaxContextBytes: 256 << 20,
		IdleTimeout:     time.Hour,
		Symbols: Symbols{
			DebugFileDirectories: []string{"/usr/lib/debug"},
			MaxMemory:            512 << 20,
		},
	}
}

// Validate reports all mistakes in c that are visible without opening files.
func (c *Config) Validate() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.Mode != modeResolve && c.Mode != modeLocate {
		fault("mode must be %s or %s, not %q", modeResolve, modeLocate, c.Mode)
	}
	if c.Mode == modeLocate && c.EmitLate {
		fault("emit_late requires mode %s: mode locate looks up no names, so no names arrive late", modeResolve)
	}
	for _, p := range []struct {
		name  string
		value time.Duration
	}{{"local", c.Patience.Local}, {"servers", c.Patience.Servers}} {
		if p.value < 0 || p.value > maxPatience {
			fault("patience::%s must be from 0s to %s, not %s: each batch may wait that long", p.name, maxPatience, p.value)
		}
	}
	if c.MaxContexts <= 0 {
		fault("max_contexts must be positive, not %d", c.MaxContexts)
	}
	if c.MaxContextBytes <= 0 {
		fault("max_context_bytes must be positive, not %d", c.MaxContextBytes)
	}
	if c.IdleTimeout < time.Second {
		fault("idle_timeout must be at least 1s, not %s", c.IdleTimeout)
	}
	return errors.Join(append(errs, c.Symbols.faults()...)...)
}

const minMemory = 16 << 20 // bytes of Symbols.MaxMemory: with less, few programs can be resolved

func (s *Symbols) faults() (errs []error) {
	if s.MaxMemory < minMemory {
		errs = append(errs, fmt.Errorf("symbols::max_memory must be at least 16MiB, not %d", s.MaxMemory))
	}
	for _, word := range s.DebuginfodURLs {
		if strings.HasPrefix(word, "ima:") {
			continue
		}
		if u, err := url.Parse(word); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			errs = append(errs, fmt.Errorf("symbols::debuginfod_urls: %q is not an http or https URL", word))
		}
	}
	if len(s.DebuginfodURLs) > 0 && s.CacheDirectory == "" {
		errs = append(errs, errors.New("symbols::debuginfod_urls requires symbols::cache_directory, the folder for downloaded files"))
	}
	return errs
}
