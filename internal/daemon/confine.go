package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/symfilter/symfilter"
	"github.com/symfilter/symfilter/debuginfod"
	"github.com/symfilter/symfilter/internal/sandbox"
)

// A confinement is the sandbox of the process. The first configuration defines the sandbox, after
// the sockets are open and before any peer or log is read. A process cannot widen its own sandbox,
// so a reload that needs more rights is refused.
type confinement struct {
	policy          sandbox.Policy
	state           sandbox.State
	writes, sockets []fs.FileInfo // identities of the policy's folders at the start
}

func (d *Daemon) confine(c *Config) error {
	if d.house.options.Confine == nil {
		return nil
	}
	if c.State != "" {
		if err := os.MkdirAll(c.State, 0o700); err != nil { // the sandbox needs existing folders
			return fmt.Errorf("state: %w", err)
		}
	}
	needs, err := c.needs()
	if err != nil {
		return err
	}
	p := needs.policy()
	box := &confinement{policy: p, writes: existing(p.Write), sockets: existing(p.Sockets)}
	box.state = d.house.options.Confine(p)
	d.house.box = box
	return nil
}

// String names the restrictions in force. It is empty without a sandbox.
func (box *confinement) String() string {
	if box == nil {
		return ""
	}
	return box.state.String()
}

func existing(paths []string) (all []fs.FileInfo) {
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			all = append(all, info)
		}
	}
	return all
}

// needs lists the operations and files that the sandbox must allow for a configuration.
type needs struct {
	writes []need // devices, and folders for files or sockets
	calls  []need // operations on sockets
	others []need // files of other processes
}

type need struct {
	key  string // key of the configuration
	path string
	kept func(*sandbox.Policy) *bool // for calls: selects the policy's field
	what string                      // for calls: name of the operation
	sock bool                        // for writes: a folder for sockets
}

// needs returns the rights that c needs. It creates the folders of caches.
func (c *Config) needs() (*needs, error) {
	n := &needs{}
	o, err := c.Symbols.servers()
	if err != nil {
		return nil, fmt.Errorf("symbols: %w", err)
	}
	servers := len(o.URLs) > 0
	if servers {
		n.call("symbols.debuginfod_urls", connecting, func(p *sandbox.Policy) *bool { return &p.Network })
	}
	caches := sandbox.Caches{Index: c.Symbols.CacheDirectory, Servers: servers, MakeIndex: true, MakeDownloads: servers}
	if caches.Index == "" {
		caches.Index = symfilter.UserCacheDir()
	} else {
		// caches.Folders leaves out a missing folder, but [confinement.allows] must report it
		n.write("symbols.cache_directory", caches.Index)
	}
	if servers {
		if caches.Downloads = o.CacheDir; caches.Downloads == "" {
			defaults, _ := debuginfod.OptionsFromEnv(os.Getenv)
			caches.Downloads = defaults.CacheDir
		}
	}
	for _, dir := range caches.Folders() {
		n.write("symbols.cache_directory", dir)
	}
	if c.State == "" {
		n.write("state", privateRoot())
	} else {
		n.write("state", c.State)
	}
	n.listener("admin.listen", c.Admin.Listen)
	n.listener("service.listen", c.Service.Listen)
	for name, p := range c.Pipelines {
		n.pipeline("pipelines."+name, &p)
	}
	for key, paths := range map[string][]string{
		"symbols.symbol_paths": c.Symbols.SymbolPaths, "symbols.ids_files": c.Symbols.IDsFiles,
		"symbols.build_id_directories": c.Symbols.BuildIDDirectories, "symbols.debug_file_directories": c.Symbols.DebugFileDirectories,
		"state": {c.State}, "symbols.cache_directory": {c.Symbols.CacheDirectory},
	} {
		n.read(key, paths...)
	}
	return n, nil
}

const (
	connecting = "open connections"
	accepting  = "accept connections"
	listening  = "open sockets"
)

func (n *needs) pipeline(key string, p *Pipeline) {
	n.read(key+".input.files", p.Input.Files...)
	n.listener(key+".input.listen", p.Input.Listen)
	n.listener(key+".input.http", p.Input.HTTP)
	n.listener(key+".input.journal_upload", p.Input.Journal)
	if file := p.Output.File; file != "" {
		n.read(key+".output.file", file)
		if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
			n.write(key+".output.file", file) // a device: its folder has other devices
		} else {
			n.write(key+".output.file", filepath.Dir(file))
			n.write(key+".output.file", sandbox.FolderOf(file))
		}
	}
	switch a, err := parseAddress(p.Output.Connect, false); {
	case p.Output.Connect == "" || err != nil:
	case a.network == "unix":
		n.call(key+".output.connect", connecting+" to a socket with a path", func(p *sandbox.Policy) *bool { return &p.Local })
	default:
		n.call(key+".output.connect", connecting, func(p *sandbox.Policy) *bool { return &p.Network })
	}
}

func (n *needs) listener(key, address string) {
	network, name, _ := strings.Cut(address, ":")
	switch {
	case address == "":
	case network == "unix" || network == "unixgram":
		n.writes = append(n.writes, need{key: key, path: filepath.Dir(name), sock: true})
	case network == "systemd":
		n.call(key, accepting, func(p *sandbox.Policy) *bool { return &p.Accept })
	default:
		n.call(key, listening+" of TCP or UDP", func(p *sandbox.Policy) *bool { return &p.Listen })
	}
}

func (n *needs) call(key, what string, kept func(*sandbox.Policy) *bool) {
	n.calls = append(n.calls, need{key: key, what: what, kept: kept})
}

func (n *needs) write(key, path string) { n.writes = append(n.writes, need{key: key, path: path}) }

// read adds each path that leads through the files of another process, such as /proc/1234/root. The
// sandbox allows reading all other files.
func (n *needs) read(key string, paths ...string) {
	for _, path := range paths {
		if sandbox.OfOtherProcess(path) {
			n.others = append(n.others, need{key: key, path: path})
		}
	}
}

func (n *needs) policy() (p sandbox.Policy) {
	for _, w := range n.writes {
		if w.sock {
			p.Sockets = append(p.Sockets, w.path)
		} else {
			p.Write = append(p.Write, w.path)
		}
	}
	for _, c := range n.calls {
		*c.kept(&p) = true
	}
	p.OtherProcesses = len(n.others) > 0
	return p
}

const restart = "restart symfilterd (no lines of followed files are lost), or start it with --no-sandbox"

// allows returns a fault for each key whose rights the sandbox denies.
func (box *confinement) allows(c *Config) error {
	if box == nil {
		return nil
	}
	needs, err := c.needs()
	if err != nil {
		return err
	}
	var faults Faults
	fault := func(key, format string, args ...any) {
		if slices.ContainsFunc(faults, func(f Fault) bool { return f.Key == key }) {
			return
		}
		faults = append(faults, Fault{Key: key, Problem: "the sandbox, which is fixed at the start, does not let symfilterd " + fmt.Sprintf(format, args...) + ": " + restart})
	}
	for _, n := range needs.calls {
		if box.state.Seccomp && !*n.kept(&box.policy) {
			fault(n.key, "%s", n.what)
		}
	}
	for _, n := range needs.writes {
		kept := box.writes
		if n.sock {
			kept = box.sockets
		}
		switch {
		case n.sock && box.state.Seccomp && len(box.policy.Sockets) == 0:
			fault(n.key, "%s with a path", listening)
		case box.state.Landlock > 0 && !within(n.path, kept):
			fault(n.key, "create files in %s", n.path)
		}
	}
	for _, n := range needs.others {
		if box.state.Landlock > 0 {
			fault(n.key, "read files of other processes, such as %s", n.path)
		}
	}
	slices.SortStableFunc(faults, func(a, b Fault) int { return strings.Compare(a.Key, b.Key) })
	if len(faults) > 0 {
		return faults
	}
	return nil
}

// within reports whether path is in folders, or below a folder in folders. Like the sandbox, it
// compares file identities, since a new folder may have an old path.
func within(path string, folders []fs.FileInfo) bool {
	path, err := filepath.Abs(path)
	if err != nil {
		return false
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	for ; ; path = filepath.Dir(path) {
		if info, err := os.Stat(path); err == nil && slices.ContainsFunc(folders, func(f fs.FileInfo) bool { return os.SameFile(f, info) }) {
			return true
		}
		if path == filepath.Dir(path) {
			return false
		}
	}
}

// explain adds advice to a permission error that the sandbox has caused in dir.
func (box *confinement) explain(err error, dir string) error {
	if box == nil || box.state.Landlock == 0 || !errors.Is(err, fs.ErrPermission) || within(dir, box.writes) {
		return err
	}
	return fmt.Errorf("%w: the folder was replaced after the start of symfilterd, and the sandbox allows writing only to the old one: %s", err, restart)
}
