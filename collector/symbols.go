package collector

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/processor"

	"github.com/symfilter/symfilter"
	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/debuginfod"
	"github.com/symfilter/symfilter/internal/doctor"
	"github.com/symfilter/symfilter/symbolize"
)

// storageName is the name of the client of the storage extension. All processors of a component
// ID share it, because a storage opens its file once.
const storageName = "contexts"

// A factory holds the resources that processors of one configuration share. The Collector calls its
// create functions once for each pipeline.
type factory struct {
	mu  sync.Mutex
	all map[*Config]*shared

	symbolizer symbolize.Options // options of all Symbolizers; tests set finders
}

// shared holds the resources that all processors of a configuration use. The last release closes
// them.
type shared struct {
	of    *factory
	cfg   *Config
	users int // guarded by of.mu

	symbols *symfilter.Opened     // nil in mode locate
	locator *symbolize.Symbolizer // in mode locate: only demangles names in symbol elements
	client  storage.Client        // nil without a storage
	saving  sync.Mutex            // held during writes: the newest context must be the last
	stored  stored
	named   named // kept answers for profiles
	*telemetry

	mu   sync.Mutex
	late map[*logsProcessor]struct{} // processors to notify of new debug files
}

// acquire returns the shared resources of a configuration, opened for its first processor.
func (f *factory) acquire(ctx context.Context, set processor.Settings, cfg *Config, host component.Host) (*shared, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.all[cfg]; s != nil {
		s.users++
		return s, nil
	}
	s := &shared{of: f, cfg: cfg, users: 1, late: make(map[*logsProcessor]struct{})}
	if err := s.open(ctx, set, host); err != nil {
		return nil, errors.Join(err, s.close(ctx))
	}
	f.all[cfg] = s
	return s, nil
}

// release ends one processor's use of s. The last call closes s.
func (s *shared) release(ctx context.Context) error {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if s.users--; s.users > 0 {
		return nil
	}
	delete(s.of.all, s.cfg)
	return s.close(ctx)
}

func (s *shared) open(ctx context.Context, set processor.Settings, host component.Host) (err error) {
	s.telemetry = newTelemetry(s, set.Logger)
	if s.cfg.Mode == modeResolve {
		if s.symbols, err = s.openSymbols(); err != nil {
			return err
		}
		for _, doubt := range s.cfg.Symbols.doubts() {
			set.Logger.Warn(doubt)
		}
	} else {
		s.locator = symbolize.New(symbolize.Options{})
	}
	if s.cfg.Storage != nil {
		ext, ok := host.GetExtensions()[*s.cfg.Storage].(storage.Extension)
		if !ok {
			return fmt.Errorf("storage: the Collector has no storage extension %q: add it to extensions and service::extensions", s.cfg.Storage)
		}
		if s.client, err = ext.GetClient(ctx, component.KindProcessor, set.ID, storageName); err != nil {
			return fmt.Errorf("storage: %w", err)
		}
		s.stored.list(ctx, s.client, s.telemetry)
	}
	return s.telemetry.register(set.TelemetrySettings)
}

// openSymbols opens the sources of debug files, but no file: a build ID in a log starts the
// search for its file.
func (s *shared) openSymbols() (*symfilter.Opened, error) {
	c := &s.cfg.Symbols
	o := symfilter.Symbols{
		SymbolPaths: c.SymbolPaths, IDsFiles: c.IDsFiles, BuildIDDirs: c.BuildIDDirectories, DebugDirs: c.DebugFileDirectories,
		NoDefaultDebugDirs: true,
		NoPaths:            !c.ModulePaths,
		CacheDir:           c.CacheDirectory,
		NoCache:            c.CacheDirectory == "",
		MaxMemory:          int64(c.MaxMemory),
		Symbolizer:         s.of.symbolizer,
	}
	o.Symbolizer.Notify, o.Symbolizer.Came = s.telemetry.notify, s.came
	if len(c.DebuginfodURLs) > 0 {
		o.Servers = debuginfod.Options{URLs: c.DebuginfodURLs, CacheDir: c.CacheDirectory, Observe: s.telemetry.observe}
	}
	opened, err := o.Open()
	if err != nil {
		return nil, fmt.Errorf("symbols::debuginfod_urls: %w", err)
	}
	return opened, nil
}

// doubts returns a warning for each place of s where no debug file will be found. It leaves out the
// default folder, which exists only if packages of debug files are installed.
func (s *Symbols) doubts() (all []string) {
	search := doctor.Search{SymbolPaths: s.SymbolPaths, IDsFiles: s.IDsFiles, BuildIDDirs: s.BuildIDDirectories, DebugDirs: s.DebugFileDirectories}
	for place, doubt := range search.Doubts() {
		if place.Path != symfilter.DebugDir {
			all = append(all, "symbols::"+place.Flag+": "+doubt)
		}
	}
	return all
}

// listen adds p to the processors that came notifies, or removes p if begin is false.
func (s *shared) listen(p *logsProcessor, begin bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if begin {
		s.late[p] = struct{}{}
	} else {
		delete(s.late, p)
	}
}

// came notifies the processors added by listen. It is called when the file of a build ID can answer
// more lookups than before.
func (s *shared) came(buildid.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.late {
		p.late.came()
	}
}

func (s *shared) close(ctx context.Context) error {
	s.telemetry.unregister()
	var errs []error
	if s.symbols != nil {
		errs = append(errs, s.symbols.Close())
	}
	if s.locator != nil {
		errs = append(errs, s.locator.Close())
	}
	if s.client != nil {
		errs = append(errs, s.client.Close(ctx))
	}
	return errors.Join(errs...)
}
