package daemon

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/symfilter/symfilter/internal/follow"
)

// A Config is the contents of a configuration file. [Parse] sets missing keys to their defaults.
type Config struct {
	Admin   Admin   `yaml:"admin"`
	Log     Log     `yaml:"log"`
	Symbols Symbols `yaml:"symbols"`
	Limits  Limits  `yaml:"limits"`
	Service Service `yaml:"service"`
	// folder of checkpoints and contexts; empty: a restart loses them
	State     string              `yaml:"state"`
	Pipelines map[string]Pipeline `yaml:"pipelines"`
}

// Admin is the listener for health and metrics.
type Admin struct {
	Listen      string `yaml:"listen"` // HOST:PORT or unix:PATH; empty: none
	AllowRemote bool   `yaml:"allow_remote"`
	TLS         *TLS   `yaml:"tls"`
	// host names that requests may use; IP addresses, localhost and this machine's name are always
	// allowed
	Hosts []string `yaml:"hosts"`
}

// A TLS names the files of certificates. A listener reads them at its start and at each reload, an
// output at each connection.
type TLS struct {
	Certificate string `yaml:"certificate"`
	Key         string `yaml:"key"`
	// authorities for the certificates of peers; if empty, clients need no certificate, and outputs
	// use the system's authorities
	ClientCA string `yaml:"client_ca"`
}

// Service is the listener for programs that look up addresses. A protocol is off unless its key is
// set.
type Service struct {
	Listen      string   `yaml:"listen"` // HOST:PORT, unix:PATH or systemd:NAME; empty: none
	Symbolize   bool     `yaml:"symbolize"`
	Profile     bool     `yaml:"profile"`
	Mozilla     bool     `yaml:"mozilla"`
	Sentry      bool     `yaml:"symbolicator"`
	Debuginfod  bool     `yaml:"debuginfod"`
	Wait        Duration `yaml:"wait"` // longest wait of a request for debug files
	Mode        Mode     `yaml:"mode"` // as in [Input]
	AllowRemote bool     `yaml:"allow_remote"`
	TLS         *TLS     `yaml:"tls"`
	Hosts       []string `yaml:"hosts"` // as in [Admin]
}

// Log configures the daemon's own messages.
type Log struct {
	Level  string `yaml:"level"`  // debug, info, warn or error
	Format string `yaml:"format"` // auto, text or json
}

// Symbols configures where all pipelines find debug files.
type Symbols struct {
	SymbolPaths               []string `yaml:"symbol_paths"`
	IDsFiles                  []string `yaml:"ids_files"`
	BuildIDDirectories        []string `yaml:"build_id_directories"`
	DebugFileDirectories      []string `yaml:"debug_file_directories"`
	NoDefaultDebugDirectories bool     `yaml:"no_default_debug_directories"`
	DebuginfodURLs            URLs     `yaml:"debuginfod_urls"`
	CacheDirectory            string   `yaml:"cache_directory"`
	MaxMemory                 Size     `yaml:"max_memory"`
	Jobs                      int      `yaml:"jobs"`         // goroutines that read one file; 0: one per processor
	ModulePaths               bool     `yaml:"module_paths"` // open files at paths in logs
}

// Limits bound all pipelines together.
type Limits struct {
	Contexts     int  `yaml:"contexts"`      // processes with known modules and maps
	ContextBytes Size `yaml:"context_bytes"` // memory of their modules and maps
	Connections  int  `yaml:"connections"`   // open connections
	// bytes of a line from a connection; longer lines are cut
	Line Size     `yaml:"line"`
	Idle Duration `yaml:"idle"` // how long a peer without a connection keeps its context
}

// A Pipeline has one input and one output.
type Pipeline struct {
	Input    Input    `yaml:"input"`
	Filter   Filter   `yaml:"filter"`
	Patience Patience `yaml:"patience"`
	Output   Output   `yaml:"output"`
}

// An Input is the source of lines: exactly one of Files, Stdin, Listen, HTTP and Journal is set.
type Input struct {
	Files       []string `yaml:"files"`
	ExcludePath []string `yaml:"exclude_path"`
	StartAt     StartAt  `yaml:"start_at"`
	RotateWait  Duration `yaml:"rotate_wait"`
	Poll        bool     `yaml:"poll"`
	Stdin       bool     `yaml:"stdin"`
	Listen      string   `yaml:"listen"`  // tcp:HOST:PORT, unix:PATH, udp:HOST:PORT, unixgram:PATH or systemd:NAME
	Mode        Mode     `yaml:"mode"`    // permissions of a unix socket; 0: 0660
	Framing     string   `yaml:"framing"` // how a stream delimits messages: lines, octets (RFC 6587), or auto
	HTTP        string   `yaml:"http"`    // HOST:PORT, unix:PATH or systemd:NAME
	Journal     string   `yaml:"journal_upload"`
	Path        string   `yaml:"path"` // path of the URL
	Key         string   `yaml:"key"`  // separates the processes of a stream: see filter.ProcessKey
	Format      string   `yaml:"format"`
	JSONFields  []string `yaml:"json_fields"`
	AllowRemote bool     `yaml:"allow_remote"`
	TLS         *TLS     `yaml:"tls"`
	Hosts       []string `yaml:"hosts"` // as in [Admin]; HTTP only
}

// A Filter configures how lines are symbolized.
type Filter struct {
	Dialects    string   `yaml:"dialects"`     // auto or none
	ModuleLines string   `yaml:"module_lines"` // full, short, none or raw
	PrefixMap   []string `yaml:"prefix_map"`   // OLD=NEW
	Basenames   bool     `yaml:"basenames"`
	Color       string   `yaml:"color"` // keep or never
}

// A Patience bounds how long lines wait for debug files.
type Patience struct {
	Local     Duration `yaml:"local"`
	Servers   Duration `yaml:"servers"`
	PerMinute Duration `yaml:"per_minute"`
	Never     bool     `yaml:"never"`
}

// An Output is the destination of lines: exactly one of Stdout, File, Peer and Connect is set.
type Output struct {
	Stdout string `yaml:"stdout"` // text or json
	// path, in which {peer} is replaced: see peerField
	File      string `yaml:"file"`
	Mode      Mode   `yaml:"mode"`
	OpenFiles int    `yaml:"open_files"`
	Sync      string `yaml:"sync"` // when files are synced: always, second or never
	Peer      bool   `yaml:"peer"`
	Connect   string `yaml:"connect"` // tcp:HOST:PORT or unix:PATH
	Format    string `yaml:"format"`  // text or json
	TLS       *TLS   `yaml:"tls"`
}

// URLs are the base URLs of debuginfod servers. System selects the URLs in the environment variable
// DEBUGINFOD_URLS. If the variable has none, System selects the URLs in /etc/debuginfod.
type URLs struct {
	System bool
	List   []string
}

// A Size is a number of bytes: 64, 64KiB, 64MiB or 1GiB.
type Size int64

// A Duration has the form that time.ParseDuration reads, and is not negative.
type Duration time.Duration

// A Mode holds a file's permission bits, which the configuration gives in octal. The zero value
// selects the default.
type Mode fs.FileMode

// A StartAt selects where reading a file without a checkpoint begins: see [follow.Start].
type StartAt follow.Start

// UnmarshalText reads a size.
func (s *Size) UnmarshalText(text []byte) error {
	number, unit := string(text), int64(1)
	for _, u := range []struct {
		suffix string
		bytes  int64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}} {
		if len(number) > len(u.suffix) && number[len(number)-len(u.suffix):] == u.suffix {
			number, unit = number[:len(number)-len(u.suffix)], u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > (1<<62)/unit {
		return fmt.Errorf("%q is not a number of bytes, such as 4096, 64KiB, 512MiB or 1GiB", text)
	}
	*s = Size(n * unit)
	return nil
}

// UnmarshalText reads a duration.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil || v < 0 {
		return fmt.Errorf("%q is not a duration, such as 500ms, 10s or 1h", text)
	}
	*d = Duration(v)
	return nil
}

// UnmarshalText reads an octal mode from 1 to 777.
func (m *Mode) UnmarshalText(text []byte) error {
	v, err := strconv.ParseUint(strings.TrimPrefix(string(text), "0o"), 8, 32)
	if err != nil || v == 0 || v > 0o777 {
		return fmt.Errorf("%q is not a file's mode in octal, from 1 to 777, such as 0640", text)
	}
	*m = Mode(v)
	return nil
}

// UnmarshalText reads "beginning", "end" or a duration.
func (s *StartAt) UnmarshalText(text []byte) error {
	start, err := follow.ParseStart(string(text))
	*s = StartAt(start)
	return err
}
