package daemon

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/symfilter/symfilter/internal/doctor"
)

// Inspect examines the files and folders in c. It opens no input or output. A fault prevents the
// daemon from starting on this machine. A note is about a doubtful value that may be intended.
func (c *Config) Inspect() (notes []string, faults Faults) {
	i := &inspection{}
	i.tls("admin.tls", c.Admin.TLS)
	i.tls("service.tls", c.Service.TLS)
	i.symbols(&c.Symbols)
	for _, name := range slices.Sorted(maps.Keys(c.Pipelines)) {
		p := c.Pipelines[name]
		path := "pipelines." + name
		i.tls(path+".input.tls", p.Input.TLS)
		i.tls(path+".output.tls", p.Output.TLS)
		i.input(c, path+".input", &p.Input)
		if p.Output.File != "" {
			before, _, _ := strings.Cut(p.Output.File, peerField)
			i.folder(path+".output.file", filepath.Dir(before+"x"), i.fault)
			if info, err := os.Stat(p.Output.File); err == nil && info.IsDir() {
				i.fault(path+".output.file", "%s is a folder: append the name of a file", p.Output.File)
			}
		}
		for what, address := range map[string]string{"input.listen": p.Input.Listen, "input.http": p.Input.HTTP, "input.journal_upload": p.Input.Journal} {
			i.socket(path+"."+what, address)
		}
	}
	i.socket("admin.listen", c.Admin.Listen)
	i.socket("service.listen", c.Service.Listen)
	if info, err := os.Stat(c.State); c.State != "" && err == nil && !info.IsDir() {
		i.fault("state", "%s is not a folder: name a folder", c.State)
	}
	return i.notes, i.faults
}

type inspection struct {
	notes  []string
	faults Faults
}

func (i *inspection) fault(key, format string, args ...any) {
	i.faults = append(i.faults, Fault{Key: key, Problem: fmt.Sprintf(format, args...)})
}

func (i *inspection) note(key, format string, args ...any) {
	i.notes = append(i.notes, key+": "+fmt.Sprintf(format, args...))
}

// folder reports a path that does not lead to a folder.
func (i *inspection) folder(key, dir string, report func(key, format string, args ...any)) {
	switch info, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		report(key, "the folder %s does not exist: create it", dir)
	case err != nil:
		report(key, "%v", err)
	case !info.IsDir():
		report(key, "%s is not a folder", dir)
	}
}

// socket adds a note if the folder of a unix socket does not exist.
func (i *inspection) socket(key, address string) {
	for _, network := range []string{"unix:", "unixgram:"} {
		if path, ok := strings.CutPrefix(address, network); ok {
			// a service manager may make the folder at the start
			i.folder(key, filepath.Dir(path), i.note)
		}
	}
}

func (i *inspection) input(c *Config, path string, in *Input) {
	for _, pattern := range in.Files {
		dir := filepath.Dir(pattern)
		for strings.ContainsAny(dir, `*?[\`) {
			dir = filepath.Dir(dir)
		}
		i.folder(path+".files", dir, i.note)
	}
	if in.Files != nil && c.State == "" {
		i.note(path+".files", "state is not set, so no checkpoint is kept: a restart reads files from %s", startName(in.StartAt))
	}
}

// startName describes where reading begins.
func startName(s StartAt) string {
	switch {
	case s == 0:
		return "their beginning"
	case s < 0:
		return "their end"
	}
	return "start_at"
}

func (i *inspection) symbols(s *Symbols) {
	search := doctor.Search{SymbolPaths: s.SymbolPaths, IDsFiles: s.IDsFiles, BuildIDDirs: s.BuildIDDirectories, DebugDirs: s.DebugFileDirectories}
	for place, doubt := range search.Doubts() {
		i.note("symbols."+place.Flag, "%s", doubt)
	}
}

// tls reports certificate files that cannot be loaded.
func (i *inspection) tls(path string, c *TLS) {
	if c == nil {
		return
	}
	if c.Certificate != "" {
		if _, err := tls.LoadX509KeyPair(c.Certificate, c.Key); err != nil {
			i.fault(path, "%v: certificate and key must be PEM files of one pair", err)
		}
	}
	if c.ClientCA != "" {
		text, err := os.ReadFile(c.ClientCA)
		if err != nil {
			i.fault(path+".client_ca", "%v", err)
		} else if !x509.NewCertPool().AppendCertsFromPEM(text) {
			i.fault(path+".client_ca", "%s contains no PEM certificate", c.ClientCA)
		}
	}
}
