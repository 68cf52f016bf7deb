package daemon

import (
	"os"
	"sync"

	"github.com/symfilter/symfilter"
	"github.com/symfilter/symfilter/debuginfod"
)

// folder in which the system's packages name debuginfod servers
const systemURLs = "/etc/debuginfod"

// A symbols holds opened sources of debug files, which stages, the service and the daemon share.
// The last release closes them.
type symbols struct {
	*symfilter.Opened
	conf Symbols

	observe func(debuginfod.Request)

	mu    sync.Mutex
	users int
}

// openSymbols opens the symbols for c, which the caller must release. offHeap is [Options.OffHeap],
// and forwarded [debuginfod.Options.Forwarded].
func openSymbols(c Symbols, observe func(debuginfod.Request), offHeap func(int64), forwarded string) (*symbols, error) {
	o := symfilter.Symbols{
		SymbolPaths: c.SymbolPaths, IDsFiles: c.IDsFiles, BuildIDDirs: c.BuildIDDirectories, DebugDirs: c.DebugFileDirectories,
		NoDefaultDebugDirs: c.NoDefaultDebugDirectories,
		NoPaths:            !c.ModulePaths,
		CacheDir:           c.CacheDirectory,
		MaxMemory:          int64(c.MaxMemory),
	}
	var err error
	if o.Servers, err = c.servers(); err != nil {
		return nil, err
	}
	o.Servers.Observe, o.Servers.Forwarded = observe, forwarded
	o.Symbolizer.OffHeap, o.Symbolizer.Jobs = offHeap, c.Jobs
	opened, err := o.Open()
	if err != nil {
		return nil, err
	}
	return &symbols{Opened: opened, conf: c, observe: observe, users: 1}, nil
}

// servers returns the servers in c, and the folder of their downloads.
func (c *Symbols) servers() (o debuginfod.Options, err error) {
	if c.DebuginfodURLs.System {
		if o, err = debuginfod.OptionsFromEnv(os.Getenv); err != nil {
			return o, err
		}
		if len(o.URLs) == 0 {
			if o.URLs, err = debuginfod.SystemURLs(systemURLs); err != nil {
				return o, err
			}
		}
	} else {
		o.URLs = c.DebuginfodURLs.List
	}
	if len(o.URLs) > 0 && c.CacheDirectory != "" {
		o.CacheDir = c.CacheDirectory
	}
	return o, nil
}

func (s *symbols) share() *symbols {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users++
	return s
}

func (s *symbols) release() {
	s.mu.Lock()
	s.users--
	last := s.users == 0
	s.mu.Unlock()
	if last {
		s.Close()
	}
}
