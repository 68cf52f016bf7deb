package daemon

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

// one is a pipeline without faults. In most tests, it is line 1.
const one = "pipelines: {app: {input: {stdin: true}, output: {stdout: text}}}\n"

// pipe returns a configuration with one pipeline, whose input is on line 3 and whose output is on
// line 4.
func pipe(in, out string) string {
	return "pipelines:\n  app:\n    input: {" + in + "}\n    output: {" + out + "}\n"
}

// faults are configuration files with mistakes, and the messages that Parse must return. unseen is
// set if the schema accepts the file, since a schema cannot compare keys of different sections.
var faults = []struct {
	name, text string
	unseen     bool
	want       string
}{
	{name: "empty", text: "", want: "the file is empty: a configuration needs pipelines, each with an input and an output, or a service"},
	{name: "comment", text: "# nothing\n", want: "the file is empty: a configuration needs pipelines, each with an input and an output, or a service"},
	{name: "no pipelines", text: "log: {level: info}\n", want: "1:1: pipelines: missing: every configuration needs this key, or service: the pipelines by name: a letter or digit, then letters, digits, . _ or - (at most 64 characters)"},
	{name: "empty pipelines", text: "pipelines: {}\n", want: "1:12: pipelines: not given; name at least one, with an input and an output"},
	{name: "list of pipelines", text: "pipelines: [a]\n", want: "1:12: pipelines: a list is given where pipelines by name are expected: NAME: {input: …, output: …}"},
	{name: "text", text: "hello\n", want: `1:1: "hello" is given where a section is expected: indented lines of KEY: VALUE, with the keys admin, log, symbols, limits, service, state and pipelines`},
	{name: "pipeline without a value", text: "pipelines:\n  app:\n", want: "2:3: pipelines.app: has no value: give it an input and an output"},
	{name: "pipeline without an output", text: "pipelines:\n  app:\n    input: {stdin: true}\n", want: "2:3: pipelines.app.output: missing: every configuration needs this key: where lines go"},
	{name: "name of a pipeline", text: "pipelines:\n  a/b: {input: {stdin: true}, output: {stdout: text}}\n", want: "2:3: pipelines.a/b: not a name of a pipeline: use a letter or digit, then letters, digits, . _ or - (at most 64 characters)"},
	{name: "misspelt key", text: "lgo: {}\n" + one, want: `1:1: lgo: unknown; did you mean "log"?`},
	{name: "key of another section", text: pipe("stdin: true, sync: never", "stdout: text"), want: "3:26: pipelines.app.input.sync: unknown here; this key belongs to the section pipelines.NAME.output"},
	{name: "key of the file", text: pipe("stdin: true, pipelines: 1", "stdout: text"), want: "3:26: pipelines.app.input.pipelines: unknown here; this key belongs to the file itself"},
	{name: "key of no section", text: "verbosity: 3\n" + one, want: "1:1: verbosity: unknown; the keys here are admin, log, symbols, limits, service, state and pipelines"},
	{name: "key twice", text: "log: {level: info, level: warn}\n" + one, want: "1:20: log.level: given twice: also in line 1; remove one"},
	{name: "key that is a list", text: "? [a]\n: b\n" + one, want: "1:3: a key is a list: write a name"},
	{name: "key that is a number", text: "pipelines:\n  7: {input: {stdin: true}, output: {stdout: text}}\n", want: "2:3: pipelines: a key is the number 7: write a name, in quotes if necessary"},
	{name: "merge key", text: "log: &l {level: info}\n" + one + "admin:\n  <<: *l\n", want: "4:3: admin: << is not supported: use an alias for a whole section, as in patience: *slow"},
	{name: "no value", text: "log:\n" + one, want: "1:1: log: has no value: give it one, or remove the key"},
	{name: "section wanted", text: "log: info\n" + one, want: `1:6: log: "info" is given where a section is expected: indented lines of KEY: VALUE, with the keys level and format`},
	{name: "word", text: "log: {level: warning}\n" + one, want: `1:14: log.level: "warning" is not one of debug, info, warn and error; did you mean "warn"?`},
	{name: "other word", text: "log: {level: 'loud'}\n" + one, want: `1:14: log.level: "loud" is not one of debug, info, warn and error`},
	{name: "list for a word", text: "log: {level: [info]}\n" + one, want: "1:14: log.level: a list is given where one value is expected: debug, info, warn, error"},
	{name: "number for text", text: "state: 5\n" + one, want: `1:8: state: the number 5 is given where text is expected: write it in quotes, "5"`},
	{name: "empty text", text: "state: ''\n" + one, want: "1:8: state: is empty: give it a value, or remove the key"},
	{name: "text for a list", text: pipe("files: /var/log/a", "stdout: text"), want: `3:20: pipelines.app.input.files: "/var/log/a" is given where a list is expected: write [/var/log/a]`},
	{name: "empty list", text: pipe("files: []", "stdout: text"), want: "3:20: pipelines.app.input.files: the list is empty; add a value"},
	{name: "number in a list", text: pipe("files: [7]", "stdout: text"), want: `3:21: pipelines.app.input.files[0]: the number 7 is given where text is expected: write it in quotes, "7"`},
	{name: "yes for true", text: pipe("stdin: yes", "stdout: text"), want: `3:20: pipelines.app.input.stdin: "yes" is given where true or false is expected`},
	{name: "text for a number", text: "limits: {contexts: many}\n" + one, want: `1:20: limits.contexts: "many" is given where a number of processes is expected`},
	{name: "number out of range", text: "limits: {connections: 0}\n" + one, want: "1:23: limits.connections: 0 is out of range: from 1 connections to 1000000 connections"},
	{name: "size", text: "limits: {line: 1MB}\n" + one, want: `1:16: limits.line: "1MB" is not a number of bytes, such as 4096, 64KiB, 512MiB or 1GiB`},
	{name: "size out of range", text: "symbols: {max_memory: 1MiB}\n" + one, unseen: true, want: "1:23: symbols.max_memory: 1MiB is out of range: from 32MiB to 1024GiB"},
	{name: "duration", text: "limits: {idle: 5}\n" + one, want: `1:16: limits.idle: "5" is not a duration, such as 500ms, 10s or 1h`},
	{name: "duration out of range", text: "limits: {idle: 1ms}\n" + one, unseen: true, want: "1:16: limits.idle: 1ms is out of range: from 1s to 8760h"},
	{name: "mode", text: pipe("stdin: true", "file: /a, mode: rw"), want: `4:30: pipelines.app.output.mode: "rw" is not the permissions of a file in octal, from 1 to 777, such as 0640`},
	{name: "start", text: pipe("files: [a], start_at: now", "stdout: text"), want: `3:35: pipelines.app.input.start_at: "now" is not beginning, end, or a duration such as 1h`},
	{name: "servers", text: "symbols: {debuginfod_urls: all}\n" + one, want: `1:28: symbols.debuginfod_urls: "all" is neither system nor a list of URLs: write [https://…]`},
	{name: "server", text: "symbols: {debuginfod_urls: [debuginfod.example]}\n" + one, unseen: true, want: `1:29: symbols.debuginfod_urls: "debuginfod.example" is not a URL of a server: write https://HOST`},
	{name: "no input", text: pipe("", "stdout: text"), want: "3:5: pipelines.app.input: not given: set one of files, stdin, listen, http and journal_upload"},
	{name: "two inputs", text: pipe("stdin: true, files: [a]", "stdout: text"), want: "3:13: pipelines.app.input.stdin: both files and this key are set: keep one, or write two pipelines"},
	{name: "no output", text: pipe("stdin: true", "format: json"), want: "4:5: pipelines.app.output: not given: set one of stdout, file, peer and connect"},
	{name: "two outputs", text: pipe("listen: 'unix:/a'", "file: /b, peer: true"), want: "4:24: pipelines.app.output.peer: both file and this key are set: keep one, or write two pipelines"},
	{name: "input that is off", text: pipe("stdin: false", "stdout: text"), want: "3:13: pipelines.app.input.stdin: false has no effect: remove the key"},
	{name: "key without effect", text: pipe("stdin: true, start_at: end", "stdout: text"), want: "3:26: pipelines.app.input.start_at: has no effect without files: remove the key"},
	{name: "mode of a socket that lets nobody connect", text: pipe("listen: 'unix:/a', mode: 0", "stdout: text"), want: `3:38: pipelines.app.input.mode: "0" is not the permissions of a file in octal, from 1 to 777, such as 0640`},
	{name: "mode of a file that lets nobody write", text: pipe("stdin: true", "file: /a, mode: '0000'"), want: `4:30: pipelines.app.output.mode: "0000" is not the permissions of a file in octal, from 1 to 777, such as 0640`},
	{name: "mode with a sticky bit", text: pipe("stdin: true", "file: /a, mode: '1640'"), want: `4:30: pipelines.app.output.mode: "1640" is not the permissions of a file in octal, from 1 to 777, such as 0640`},
	{name: "mode of standard output", text: pipe("stdin: true", "stdout: text, mode: 0600"), want: "4:28: pipelines.app.output.mode: has no effect without file: remove the key"},
	{name: "pattern", text: pipe("files: ['/var/[a']", "stdout: text"), unseen: true, want: `3:21: pipelines.app.input.files: "/var/[a" is not a valid pattern: a [ has no ], or it ends with \; write \[ for a bracket`},
	{name: "own output", text: pipe("files: ['/var/log/*.log']", "file: /var/log/all.log"), unseen: true, want: `4:14: pipelines.app.output.file: the input's pattern "/var/log/*.log" matches this file, so the pipeline would read its own lines: name another file, or add this one to exclude_path`},
	{name: "peer of files", text: pipe("files: [a]", "peer: true"), unseen: true, want: "4:14: pipelines.app.output.peer: only input.listen and input.http have a peer to answer: set another output"},
	{name: "peer of datagrams", text: pipe("listen: 'unixgram:/a'", "peer: true"), unseen: true, want: "4:14: pipelines.app.output.peer: a sender of datagrams reads no answer: set another output"},
	{name: "name of no peer", text: pipe("stdin: true", "file: '/a/{peer}.log'"), unseen: true, want: "4:14: pipelines.app.output.file: {peer} needs a peer or a followed file, and standard input has neither: remove the field"},
	{name: "folder of peers", text: pipe("listen: 'unix:/a'", "file: '/a/{peer}/b.log'"), unseen: true, want: "4:14: pipelines.app.output.file: {peer} may appear only once, and not in a folder's name: all files of a pipeline are in one folder"},
	{name: "one open file", text: pipe("stdin: true", "file: /a, open_files: 3"), unseen: true, want: "4:24: pipelines.app.output.open_files: has no effect without {peer} in file: remove the key"},
	{name: "address", text: pipe("listen: 'sctp:127.0.0.1:1'", "stdout: text"), unseen: true, want: `3:13: pipelines.app.input.listen: "sctp:127.0.0.1:1" is not an address: write tcp:HOST:PORT, unix:PATH or systemd:NAME`},
	{name: "port", text: pipe("listen: 'tcp:127.0.0.1:99999'", "stdout: text"), unseen: true, want: `3:13: pipelines.app.input.listen: "tcp:127.0.0.1:99999" has no port from 0 to 65535`},
	{name: "open to others", text: pipe("listen: 'tcp:0.0.0.0:514'", "stdout: text"), unseen: true, want: "3:13: pipelines.app.input.listen: tcp:0.0.0.0:514 is open to other machines; listen on 127.0.0.1 or on a unix socket, set certificate and key in tls, or set allow_remote: true"},
	{name: "framing of datagrams", text: pipe("listen: 'udp:127.0.0.1:514', framing: lines", "stdout: text"), unseen: true, want: "3:42: pipelines.app.input.framing: has no effect on datagrams, each of which is one message: remove the key"},
	{name: "path", text: pipe("http: '127.0.0.1:80', path: a", "stdout: text"), unseen: true, want: `3:35: pipelines.app.input.path: "a" must begin with /, like /v1/filter`},
	{name: "half of a certificate", text: pipe("listen: 'tcp:127.0.0.1:1', tls: {certificate: a}", "stdout: text"), want: "3:40: pipelines.app.input.tls: the certificate has no key: set both"},
	{name: "no certificate", text: pipe("listen: 'tcp:127.0.0.1:1', tls: {client_ca: a}", "stdout: text"), unseen: true, want: "3:40: pipelines.app.input.tls: a listener needs a certificate and a key"},
	{name: "certificate of a file", text: pipe("listen: 'unix:/a', tls: {certificate: a, key: b}", "stdout: text"), unseen: true, want: "3:32: pipelines.app.input.tls: has no effect with unix: remove the key"},
	{name: "key of processes", text: pipe("stdin: true, key: '('", "stdout: text"), unseen: true, want: "3:26: pipelines.app.input.key: process key \"(\": error parsing regexp: missing closing ): `(`; use fuchsia, logcat, syslog or a regular expression with a group"},
	{name: "prefix", text: one[:len(one)-3] + ", filter: {prefix_map: [a]}}}\n", unseen: true, want: `1:87: pipelines.app.filter.prefix_map: "a" is not of the form OLD=NEW`},
	{name: "patience", text: one[:len(one)-3] + ", patience: {never: true, local: 1s}}}\n", unseen: true, want: "1:89: pipelines.app.patience.local: has no effect if never is true: remove one of the two keys"},
	{name: "one file of two", text: pipe("stdin: true", "file: /a/b") + "  two: {input: {files: [a]}, output: {file: /a/./b}}\n", unseen: true, want: "5:39: pipelines.two.output.file: pipelines.app.output.file appends to this file too: give one of them another file"},
	{name: "one listener of two", text: "admin: {listen: '127.0.0.1:1'}\n" + strings.Replace(pipe("listen: 'tcp:127.0.0.1:1'", "stdout: text"), "\n", "\n", 1), unseen: true, want: "4:13: pipelines.app.input.listen: admin.listen has this address too: give one of them another address"},
	{name: "one path of two", text: pipe("http: '127.0.0.1:1'", "peer: true") + "  two: {input: {http: '127.0.0.1:1'}, output: {peer: true}}\n", unseen: true, want: "5:17: pipelines.two.input.http: pipelines.app.input.http has the path /v1/filter on this address too: give one of them another path"},
	{name: "one path of two, to which the sender appends", text: pipe("journal_upload: '127.0.0.1:1', path: /j", "file: /a") + "  two: {input: {http: '127.0.0.1:1', path: /j/upload}, output: {peer: true}}\n", unseen: true, want: "5:17: pipelines.two.input.http: pipelines.app.input.journal_upload has the path /j/upload on this address too: give one of them another path"},
	{name: "one server with and without certificates", text: pipe("http: '127.0.0.1:1'", "peer: true") + "  two: {input: {http: '127.0.0.1:1', path: /two, tls: {certificate: /c, key: /k}}, output: {peer: true}}\n", unseen: true, want: "5:17: pipelines.two.input.http: pipelines.app has this address with different certificates: give both the same tls"},
	{name: "service without a listener", text: "service: {}\n", unseen: true, want: "1:1: service: has no listener, and there are no pipelines: set listen"},
	{name: "service without a protocol", text: "service: {listen: '127.0.0.1:1'}\n", unseen: true, want: "1:11: service.listen: no protocol is on: set symbolize, profile, mozilla, symbolicator or debuginfod to true"},
	{name: "protocol without a listener", text: "service: {symbolize: true}\n" + one, want: "1:11: service.symbolize: has no effect without listen: remove the key"},
	{name: "service for other machines", text: "service: {listen: ':1', symbolize: true}\n", unseen: true, want: "1:11: service.listen: tcp::1 is open to other machines; listen on 127.0.0.1 or on a unix socket, set certificate and key in tls, or set allow_remote: true"},
	{name: "path of the service and of an input", text: "service: {listen: '127.0.0.1:1', symbolize: true}\n" + pipe("http: '127.0.0.1:1', path: /v1/symbolize", "peer: true"), unseen: true, want: "4:13: pipelines.app.input.http: service.listen has the path /v1/symbolize on this address too: give one of them another path"},
	{name: "service with and without certificates", text: "service: {listen: '127.0.0.1:1', symbolize: true}\n" + pipe("http: '127.0.0.1:1', tls: {certificate: /c, key: /k}", "peer: true"), unseen: true, want: "4:13: pipelines.app.input.http: service has this address with different certificates: give both the same tls"},
	{name: "service and stream at one address", text: "service: {listen: '127.0.0.1:1', symbolize: true}\n" + pipe("listen: 'tcp:127.0.0.1:1'", "stdout: text"), unseen: true, want: "4:13: pipelines.app.input.listen: service has this address too: give one of them another address"},
	{name: "standard input twice", text: pipe("stdin: true", "stdout: text") + "  two: {input: {stdin: true}, output: {stdout: text}}\n", unseen: true, want: "5:17: pipelines.two.input.stdin: pipelines.app.input.stdin also reads standard input, which can have only one reader"},
	{name: "second document", text: one + "---\n" + one, unseen: true, want: "2:1: a second document begins: a configuration is one document"},
	{name: "not YAML", text: "pipelines: {\n", unseen: true, want: "1:1: not YAML: did not find expected node content"},
	{name: "tab", text: "pipelines:\n\tapp: 1\n", unseen: true, want: "2:1: a tab: YAML is indented with spaces; replace the tab with spaces"},
	{name: "not UTF-8", text: "state: a\n# \xff\n" + one, unseen: true, want: "2:1: not UTF-8 text: save the file in UTF-8"},
	{name: "all at once", text: "state: 5\nlog: {levl: info}\n" + pipe("", "file: 1"), want: `1:8: state: the number 5 is given where text is expected: write it in quotes, "5"
2:7: log.levl: unknown; did you mean "level"?
6:20: pipelines.app.output.file: the number 1 is given where text is expected: write it in quotes, "1"
5:5: pipelines.app.input: not given: set one of files, stdin, listen, http and journal_upload`},
}

func TestMistakesAreReported(t *testing.T) {
	schema := compiled(t)
	for _, tt := range faults {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse([]byte(tt.text))
			if err == nil {
				t.Fatal("no fault")
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Error(diff)
			}
			var v any
			if yaml.Unmarshal([]byte(tt.text), &v) != nil {
				return
			}
			if err := schema.Validate(v); (err == nil) != tt.unseen {
				t.Errorf("the schema reports %v", err)
			}
		})
	}
}

func compiled(t testing.TB) *jsonschema.Schema {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("memory:symfilterd.schema.json", v); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("memory:symfilterd.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// schema.json must equal Schema. With UPDATE=1, the test first writes schema.json.
func TestThePublishedSchemaIsTheTable(t *testing.T) {
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile("schema.json", Schema(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	published, err := os.ReadFile("schema.json")
	if err != nil || !bytes.Equal(published, Schema()) {
		t.Errorf("schema.json is not that of --schema (%v): UPDATE=1 go test ./internal/daemon writes it", err)
	}
}

func TestEveryFieldIsInTheTable(t *testing.T) {
	seen := map[reflect.Type]bool{}
	for _, s := range Sections() {
		seen[s.of] = true
		var fields, keys []string
		for f := range s.of.Fields() {
			fields = append(fields, f.Tag.Get("yaml"))
		}
		for _, k := range s.Keys {
			keys = append(keys, k.Name)
			if k.Text == "" || strings.HasSuffix(k.Text, ".") {
				t.Errorf("%s: the text %q is not a phrase", s.full(k.Name), k.Text)
			}
		}
		if diff := cmp.Diff(fields, keys); diff != "" {
			t.Errorf("%v (fields -, keys +, in one order):\n%s", s.of, diff)
		}
	}
	for of := range seen {
		for f := range of.Fields() {
			kind := f.Type
			if kind.Kind() == reflect.Pointer || kind.Kind() == reflect.Map {
				kind = kind.Elem()
			}
			if kind.Kind() == reflect.Struct && kind != kindOf[URLs]() && !seen[kind] {
				t.Errorf("%v has no section", kind)
			}
		}
	}
}

func TestDefaultsAreSet(t *testing.T) {
	c, err := Parse([]byte(one))
	if err != nil {
		t.Fatal(err)
	}
	want := &Config{
		Log:     Log{Level: "info", Format: "auto"},
		Symbols: Symbols{MaxMemory: 512 << 20},
		Limits:  Limits{Contexts: 10000, ContextBytes: 256 << 20, Connections: 256, Line: 1 << 20, Idle: Duration(time.Hour)},
		Service: Service{Wait: Duration(10 * time.Second)},
		Pipelines: map[string]Pipeline{"app": {
			Input:    Input{RotateWait: Duration(5 * time.Second), Stdin: true, Framing: "auto", Format: "auto"},
			Filter:   Filter{Dialects: "auto", ModuleLines: "full", Color: "keep"},
			Patience: Patience{Local: Duration(5 * time.Second), Servers: Duration(10 * time.Second), PerMinute: Duration(20 * time.Second)},
			Output:   Output{Stdout: "text", Mode: 0o640, OpenFiles: 64, Sync: "second", Format: "text"},
		}},
	}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Error(diff)
	}
}

// every.yaml must have each key of the table, and be valid. It also has a section given by an
// alias.
func TestEveryKeyIsRead(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "every.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	if err := compiled(t).Validate(v); err != nil {
		t.Error(err)
	}
	for _, s := range Sections() {
		for _, k := range s.Keys {
			if !bytes.Contains(text, []byte(k.Name+":")) {
				t.Errorf("%s is not in every.yaml", s.full(k.Name))
			}
		}
	}
	in := c.Pipelines["files"].Input
	if got := c.Pipelines["files"].Patience; got != c.Pipelines["http"].Patience || got.Local != Duration(time.Second) {
		t.Errorf("the alias is %v", got)
	}
	if !in.Poll || in.StartAt != StartAt(time.Hour) || c.Pipelines["files"].Output.Mode != 0o600 || c.Symbols.MaxMemory != 1<<30 {
		t.Errorf("got %+v", c)
	}
}

func TestFollowedFilesHaveOutputsOfTheirOwn(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.log", "b.log"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("line of "+name+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	started(t, configuration(t, dir, "state: DIR/state\n"+pipe("files: ['DIR/*.log']", "file: 'DIR/{peer}.out', open_files: 1")), Options{})
	await(t, filepath.Join(dir, "a.log.out"), "line of a.log\n")
	await(t, filepath.Join(dir, "b.log.out"), "line of b.log\n")
}

// Parse must refuse nested or frequent aliases: they could make a small file as costly as a large
// file (a "billion laughs" attack).
func TestAliasesAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString("a: &a [x, x, x, x, x, x, x, x, x, x]\n")
	for c := 'b'; c < 'k'; c++ {
		b.WriteString(string(c) + ": &" + string(c) + " [" + strings.Repeat("*"+string(c-1)+", ", 10) + "]\n")
	}
	files := "symbols: {symbol_paths: &l [" + strings.Repeat("x, ", 900) + "]"
	for _, name := range []string{"ids_files", "build_id_directories", "debug_file_directories", "debuginfod_urls"} {
		files += ", " + name + ": *l"
	}
	many := files + "}\npipelines:\n"
	for i := range 30 {
		many += "  p" + strings.Repeat("x", i) + ": {input: {files: *l}, output: {stdout: text}}\n"
	}
	for name, text := range map[string]string{"lists": b.String() + one, "used often": many, "itself": "log: &a {level: *a}\n" + one} {
		done := fuzztest.Watch(t, text)
		_, err := Parse([]byte(text))
		done()
		if err == nil {
			t.Errorf("%s: no fault", name)
		}
	}
}

func TestLargeFilesAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "large.yaml")
	if err := os.WriteFile(path, bytes.Repeat([]byte("# a comment\n"), 100_000), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Load(path)
	if want := path + ": the file is larger than 1 MiB, which no configuration needs: name the right file"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// A file that Parse accepts must match the schema. For any other file, the error must have at most
// 1 MiB.
func FuzzConfig(f *testing.F) {
	for _, tt := range faults {
		f.Add([]byte(tt.text))
	}
	every, err := os.ReadFile(filepath.Join("testdata", "every.yaml"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(every)
	schema := compiled(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		done := fuzztest.Watch(t, text)
		defer done()
		c, err := Parse(text)
		if err != nil {
			if faults, ok := err.(Faults); !ok || len(faults) == 0 || len(err.Error()) > 1<<20 {
				t.Fatalf("an error of %d bytes, %T", len(err.Error()), err)
			}
			return
		}
		if len(c.Pipelines) == 0 && c.Service.Listen == "" {
			t.Error("neither pipelines nor a service")
		}
		var v any
		if err := yaml.Unmarshal(text, &v); err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(v); err != nil {
			t.Errorf("the schema refuses what is read: %v", err)
		}
	})
}
