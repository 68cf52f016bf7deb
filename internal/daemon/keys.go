package daemon

import (
	"reflect"
	"strconv"
	"strings"

	"github.com/symfilter/symfilter/internal/input"
	"github.com/symfilter/symfilter/symbolize"
)

// A Section describes the keys of a mapping in the configuration file. Defaults, schema, manual
// page and reference all come from the sections, so they agree.
type Section struct {
	Path string   // for example pipelines.NAME.input; empty for the whole file
	Text string   // description of the section
	One  []string // exactly one of these keys must be given; nil: no such rule
	Any  []string // at least one of these keys must be given; nil: no such rule
	Keys []Key

	of reflect.Type // struct of the section
}

// A Key is a key of a [Section]. A field with its zero value sets no rule for the key.
type Key struct {
	Name    string
	Default string   // default value, in the form used in the file
	Words   []string // allowed values
	Unit    string   // unit of numbers
	With    []string // the key has an effect only with one of these keys in the section
	Text    string

	least, most int64  // bounds of a value, in bytes, ns, or units
	also        string // a default that is not a single value, in words
	section     bool   // the value is a section or a mapping of sections
	kind        reflect.Type
}

// Kind returns the type of the values, as documents name it.
func (k *Key) Kind() string {
	switch k.kind {
	case kindOf[Size]():
		return "size"
	case kindOf[Duration]():
		return "duration"
	case kindOf[Mode]():
		return "mode"
	case kindOf[StartAt]():
		return "start"
	case kindOf[URLs]():
		return "system, or list"
	}
	switch {
	case k.section:
		return "section"
	case k.kind.Kind() == reflect.Slice:
		return "list"
	case k.kind.Kind() == reflect.Bool:
		return "true, false"
	case k.kind.Kind() == reflect.Int:
		return "number"
	case len(k.Words) > 0:
		return strings.Join(k.Words, ", ")
	}
	return "text"
}

// Range returns the bounds of a number, or "" for other values and for numbers without bounds.
func (k *Key) Range() string {
	number := k.kind == kindOf[Size]() || k.kind == kindOf[Duration]() || k.kind.Kind() == reflect.Int
	if k.section || !number || k.most == 0 {
		return ""
	}
	least := k.amount(k.least)
	if k.Unit != "" {
		least = strconv.FormatInt(k.least, 10) // "1 to 64 processors"
	}
	return least + " to " + k.amount(k.most)
}

func kindOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

// Bounds of the configuration file.
const (
	maxFile      = 1 << 20 // bytes
	maxNodes     = 20_000  // values; the values of an alias are counted at each use
	maxDepth     = 16      // levels of sections and lists; the deepest key has 6
	maxPipelines = 1000
	maxFaults    = 50 // reported
	maxList      = 1000
)

const (
	kib, mib, gib = 1 << 10, 1 << 20, 1 << 30
	second        = 1_000_000_000
	day           = 24 * 3600 * second
)

// network lists the keys of inputs with a listener.
var network = []string{"listen", "http", "journal_upload"}

const hostsText = "names by which clients reach the listener, such as a proxy's, and hosts whose pages may use it; always allowed: IP addresses, localhost, the machine's own name, the name in the listener's address, and names that TLS has checked"

// Sections returns the table of all keys, in the order of the documents.
func Sections() []Section {
	all := []Section{
		{of: kindOf[Config](), Any: []string{"pipelines", "service"}, Text: "The whole file. It is YAML: one document, at most 1 MiB. Environment variables are not expanded.", Keys: []Key{
			{Name: "admin", section: true, Text: "health and metrics"},
			{Name: "log", section: true, Text: "the daemon's own messages, on standard error"},
			{Name: "symbols", section: true, Text: "where debug files are"},
			{Name: "limits", section: true, Text: "bounds of all pipelines together"},
			{Name: "service", section: true, Text: "HTTP service that looks up addresses for other programs"},
			{Name: "state", Text: "folder of checkpoints and contexts, made if it does not exist; without this key, a restart reads files from `start_at`, and streams lose their modules and maps"},
			{Name: "pipelines", section: true, most: maxPipelines, Text: "the pipelines by name: a letter or digit, then letters, digits, . _ or - (at most 64 characters)"},
		}},
		{Path: "admin", of: kindOf[Admin](), Text: "The listener for `/healthz`, `/readyz` and `/metrics`.", Keys: []Key{
			{Name: "listen", Text: "HOST:PORT or unix:PATH; without this key, there is no listener"},
			{Name: "allow_remote", Default: "false", With: []string{"listen"}, Text: "other machines may connect without TLS"},
			{Name: "tls", section: true, With: []string{"listen"}, Text: "certificate of the listener"},
			{Name: "hosts", least: 1, most: maxList, With: []string{"listen"}, Text: hostsText},
		}},
		{Path: "tls", of: kindOf[TLS](), Text: "Certificates, in PEM files. They are read again at each reload. `admin`, `service`, an `input` and an `output` may have this section.", Keys: []Key{
			{Name: "certificate", Text: "the daemon's certificate, with its chain to the authority"},
			{Name: "key", Text: "private key of the certificate"},
			{Name: "client_ca", Text: "certificates of the authorities that sign client certificates: with this key, a listener requires a client certificate; with `connect`, the authorities accepted for the server's certificate, instead of the system's authorities"},
		}},
		{Path: "log", of: kindOf[Log](), Text: "The daemon's own messages.", Keys: []Key{
			{Name: "level", Default: "info", Words: []string{"debug", "info", "warn", "error"}, Text: "lowest level that is printed"},
			{Name: "format", Default: "auto", Words: []string{"auto", "text", "json"}, Text: "auto is text, or the journal's own form under systemd"},
		}},
		{Path: "symbols", of: kindOf[Symbols](), Text: "Where debug files are, for all pipelines. The keys have the meaning of symfilter's flags of these names.", Keys: []Key{
			{Name: "symbol_paths", most: maxList, Text: "ELF files, zip files, and folders that are searched for them"},
			{Name: "ids_files", most: maxList, Text: "ids.txt files: build IDs and their files"},
			{Name: "build_id_directories", most: maxList, Text: "folders with the layout of .build-id"},
			{Name: "debug_file_directories", most: maxList, Text: "folders with the layout that GDB uses, such as /usr/lib/debug"},
			{Name: "no_default_debug_directories", Default: "false", Text: "do not search /usr/lib/debug"},
			{Name: "debuginfod_urls", most: maxList, Text: "base URLs of servers, or system: the URLs in DEBUGINFOD_URLS, or in /etc/debuginfod if this variable is not set; without this key, no server is asked"},
			{Name: "cache_directory", Text: "folder of downloaded files and of indexes; without this key, the user's cache folder"},
			{Name: "max_memory", Default: "512MiB", least: 32 * mib, most: 1 << 40, Text: "memory for debug files and rendered frames; unpacked inputs may use half as much in addition"},
			{Name: "jobs", also: "the processors", least: 1, most: symbolize.MaxJobs, Unit: "processors", Text: "how many processors look up addresses of one file at once"},
			{Name: "module_paths", Default: "false", Text: "open files at the paths that a log names: only for logs of this machine"},
		}},
		limitsSection(),
		serviceSection(),
		{Path: "pipelines.NAME", of: kindOf[Pipeline](), Text: "One input, and one output.", Keys: []Key{
			{Name: "input", section: true, least: 1, Text: "where lines come from"},
			{Name: "filter", section: true, Text: "how lines are symbolized"},
			{Name: "patience", section: true, Text: "how long lines wait for debug files"},
			{Name: "output", section: true, least: 1, Text: "where lines go"},
		}},
		{Path: "pipelines.NAME.input", of: kindOf[Input](), One: []string{"files", "stdin", "listen", "http", "journal_upload"}, Text: "Where lines come from.", Keys: []Key{
			{Name: "files", least: 1, most: maxList, Text: "log files by name or pattern (`*`, `?`, `[a-z]`), followed across rotation"},
			{Name: "exclude_path", most: maxList, With: []string{"files"}, Text: "patterns of files that are not followed"},
			{Name: "start_at", Default: "beginning", With: []string{"files"}, Text: "where to start in files without a checkpoint: beginning, end, or a duration; with a duration, files that changed within that time are read from their beginning, other files from their end"},
			{Name: "rotate_wait", Default: "5s", most: day, With: []string{"files"}, Text: "how long a rotated file is read for late lines; 0: until it is removed"},
			{Name: "poll", Default: "false", With: []string{"files"}, Text: "check files regularly instead of waiting for events"},
			{Name: "stdin", Text: "standard input"},
			{Name: "listen", Text: "tcp:HOST:PORT, unix:PATH, udp:HOST:PORT, unixgram:PATH, or systemd:NAME, a socket of the service manager"},
			{Name: "mode", also: "0660", With: network, Text: "permissions of a unix socket, in octal, not 0"},
			{Name: "framing", Default: "auto", Words: []string{"auto", "lines", "octets"}, With: []string{"listen"}, Text: "how a stream delimits messages: by line feeds (lines), or by a length before each message (octets, RFC 6587); auto detects it from the beginning of the stream"},
			{Name: "http", Text: "HOST:PORT, unix:PATH or systemd:NAME; the answer to a POST is its body, symbolized"},
			{Name: "journal_upload", Text: "HOST:PORT, unix:PATH or systemd:NAME; accepts journals from systemd-journal-upload"},
			{Name: "path", also: "`/v1/filter`, or `/upload`", With: []string{"http", "journal_upload"}, Text: "path of the URL"},
			{Name: "key", Text: "how to separate the processes of a stream: fuchsia, logcat, syslog, or a regular expression with a group"},
			{Name: "format", Default: "auto", Words: input.Names(), Text: "format of the input; auto detects it from the beginning"},
			{Name: "json_fields", most: maxList, Text: "members of JSON lines whose text is filtered, instead of the default members"},
			{Name: "allow_remote", Default: "false", With: network, Text: "other machines may connect without TLS"},
			{Name: "tls", section: true, With: network, Text: "certificate of the listener"},
			{Name: "hosts", least: 1, most: maxList, With: []string{"http", "journal_upload"}, Text: hostsText},
		}},
		{Path: "pipelines.NAME.filter", of: kindOf[Filter](), Text: "How lines are symbolized. The keys have the meaning of symfilter's flags of these names.", Keys: []Key{
			{Name: "dialects", Default: "auto", Words: []string{"auto", "none"}, Text: "auto resolves raw backtraces, too; none resolves only markup"},
			{Name: "module_lines", Default: "full", Words: []string{"full", "short", "none", "raw"}, Text: "how the modules in markup are shown"},
			{Name: "prefix_map", most: maxList, Text: "OLD=NEW: print NEW for OLD at the start of source paths"},
			{Name: "basenames", Default: "false", Text: "print source files without their folders"},
			{Name: "color", Default: "keep", Words: []string{"keep", "never"}, Text: "whether the log's colours are kept"},
		}},
		{Path: "pipelines.NAME.patience", of: kindOf[Patience](), Text: "How long lines wait for debug files. Only the first lines that name a module wait.", Keys: []Key{
			{Name: "local", Default: "5s", most: 10 * 60 * second, Text: "longest wait for files on this machine"},
			{Name: "servers", Default: "10s", most: 10 * 60 * second, Text: "longest wait for the whole search, including debuginfod servers"},
			{Name: "per_minute", Default: "20s", most: 60 * second, Text: "longest total wait of a stream in any minute; 0: no bound"},
			{Name: "never", Default: "false", Text: "never wait for debug files: they are found and unpacked in the background, and used for later lines"},
		}},
		{Path: "pipelines.NAME.output", of: kindOf[Output](), One: []string{"stdout", "file", "peer", "connect"}, Text: "Where lines go.", Keys: []Key{
			{Name: "stdout", Words: []string{"text", "json"}, Text: "write to standard output in this form"},
			{Name: "file", Text: "file to append to, opened again after SIGHUP or if it was moved; {peer} in its name is replaced by the peer of a connection, or by the name of the followed file without its folder"},
			{Name: "mode", Default: "0640", With: []string{"file"}, Text: "permissions of new files, in octal, not 0"},
			{Name: "open_files", Default: "64", least: 1, most: 100_000, Unit: "files", With: []string{"file"}, Text: "files that may be open at once, if the name has {peer}"},
			{Name: "sync", Default: "second", Words: []string{"always", "second", "never"}, With: []string{"file"}, Text: "when lines are safe from a power cut: before they are acknowledged (always), after at most a second (second), or when the system writes them (never)"},
			{Name: "peer", Text: "write back to the sender, on the connection that the line came from"},
			{Name: "connect", Text: "tcp:HOST:PORT or unix:PATH to connect to; if the connection ends, symfilterd connects again"},
			{Name: "format", Default: "text", Words: []string{"text", "json"}, With: []string{"file", "peer", "connect"}, Text: "json: an object for each line, as `symfilter --output=json` prints it"},
			{Name: "tls", section: true, With: []string{"connect"}, Text: "connect by TLS"},
		}},
	}
	for i := range all {
		all[i].complete()
	}
	return all
}

func limitsSection() Section {
	return Section{Path: "limits", of: kindOf[Limits](), Text: "Bounds of all pipelines together.", Keys: []Key{
		{Name: "contexts", Default: "10000", least: 1, most: 10_000_000, Unit: "processes", Text: "processes whose modules and maps are remembered"},
		{Name: "context_bytes", Default: "256MiB", least: 64 * kib, most: 1 << 40, Text: "memory for the modules and maps of these processes"},
		{Name: "connections", Default: "256", least: 1, most: 1_000_000, Unit: "connections", Text: "connections that may be open at once; one peer may have three quarters of them"},
		{Name: "line", Default: "1MiB", least: 4 * kib, most: 64 * mib, Text: "longest line from a connection, in bytes; a longer line passes in parts of this size"},
		{Name: "idle", Default: "1h", least: second, most: 365 * day, Text: "a peer's context is dropped after this time without a connection or a datagram"},
	}}
}

func serviceSection() Section {
	return Section{Path: "service", of: kindOf[Service](), Text: "The listener for programs that look up addresses in the debug files of `symbols`. Each protocol is off unless its key is true. An input `http` may have the same address.", Keys: []Key{
		{Name: "listen", Text: "HOST:PORT, unix:PATH or systemd:NAME; without this key, there is no listener"},
		{Name: "symbolize", Default: "false", With: []string{"listen"}, Text: "answer POST of JSON to `/v1/symbolize`: build IDs and offsets in, functions and lines out"},
		{Name: "profile", Default: "false", With: []string{"listen"}, Text: "answer POST of a pprof profile to `/v1/profile` with this profile, completed with functions and lines"},
		{Name: "mozilla", Default: "false", With: []string{"listen"}, Text: "answer POST to `/symbolicate/v5`, Mozilla's symbolication API, which the Firefox Profiler and samply use"},
		{Name: "symbolicator", Default: "false", With: []string{"listen"}, Text: "answer POST to `/symbolicate` as Sentry's Symbolicator does for ELF"},
		{Name: "debuginfod", Default: "false", With: []string{"listen"}, Text: "answer GET of `/buildid/ID/debuginfo`, `executable`, `section/NAME` and `source/PATH` from the files, the cache and the servers of `symbols`"},
		{Name: "wait", Default: "10s", most: 10 * 60 * second, With: []string{"listen"}, Text: "longest time that a request for addresses waits for debug files; a later request gets the answers that were missing"},
		{Name: "mode", also: "0660", With: []string{"listen"}, Text: "permissions of a unix socket, in octal, not 0"},
		{Name: "allow_remote", Default: "false", With: []string{"listen"}, Text: "other machines may connect without TLS"},
		{Name: "tls", section: true, With: []string{"listen"}, Text: "certificate of the listener"},
		{Name: "hosts", least: 1, most: maxList, With: []string{"listen"}, Text: hostsText},
	}}
}

func (s *Section) complete() {
	kinds := make(map[string]reflect.Type)
	for f := range s.of.Fields() {
		kinds[f.Tag.Get("yaml")] = f.Type
	}
	for i := range s.Keys {
		s.Keys[i].kind = kinds[s.Keys[i].Name]
	}
}

func (s *Section) key(name string) *Key {
	for i := range s.Keys {
		if s.Keys[i].Name == name {
			return &s.Keys[i]
		}
	}
	return nil
}

func (s *Section) full(name string) string { return join(s.Path, name) }

// join returns the path of a key of a section.
func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
