package daemon

import "testing"

// Each mistake must be reported in one line, with the probable correction. Missing keys must be
// reported after misspelt keys.
func TestMistakesAreNamedByWhatIsMeant(t *testing.T) {
	const good = "pipelines:\n  app:\n    input: {stdin: true}\n    output: {stdout: text}\n"
	input := func(v string) string {
		return "pipelines:\n  app:\n    input: " + v + "\n    output: {stdout: text}\n"
	}
	output := func(v string) string {
		return "pipelines:\n  app:\n    input: {stdin: true}\n    output: " + v + "\n"
	}
	const tab = "a tab: YAML is indented with spaces; replace the tab with spaces"
	for _, tt := range []struct{ text, want string }{
		{"pipelines:\n  app:\n\tinput: {stdin: true}\n", "3:1: " + tab},
		{"pipelines:\n  app:\n    input:\n    \t files: [a]\n", "4:5: " + tab},
		{"\tpipelines:\n", "1:1: " + tab},
		{good + "# \tno indentation\n" + "x: [\n", "6:1: not YAML: did not find expected node content"},

		{input("/var/log/a.log"), `3:12: pipelines.app.input: "/var/log/a.log" is given where a section is expected: write {files: [/var/log/a.log]}`},
		{input("/var/log/*.log"), `3:12: pipelines.app.input: "/var/log/*.log" is given where a section is expected: write {files: ["/var/log/*.log"]}`},
		{input("[a.log, b.log]"), `3:12: pipelines.app.input: a list is given where a section is expected: write {files: […]}`},
		{input("stdin"), `3:12: pipelines.app.input: "stdin" is given where a section is expected: write {stdin: true}`},
		{input("udp:127.0.0.1:514"), `3:12: pipelines.app.input: "udp:127.0.0.1:514" is given where a section is expected: write {listen: "udp:127.0.0.1:514"}`},
		{output("/var/log/{peer}.log"), `4:13: pipelines.app.output: "/var/log/{peer}.log" is given where a section is expected: write {file: "/var/log/{peer}.log"}`},
		{output("out.log"), `4:13: pipelines.app.output: "out.log" is given where a section is expected: write {file: out.log}`},
		{output("stdout"), `4:13: pipelines.app.output: "stdout" is given where a section is expected: write {stdout: text}`},
		{output("peer"), `4:13: pipelines.app.output: "peer" is given where a section is expected: write {peer: true}`},
		{output("tcp:log.example:514"), `4:13: pipelines.app.output: "tcp:log.example:514" is given where a section is expected: write {connect: "tcp:log.example:514"}`},
		{output("7"), `4:13: pipelines.app.output: the number 7 is given where a section is expected: indented lines of KEY: VALUE, with the keys stdout, file, mode, open_files, sync, peer, connect, format and tls`},

		{"pipelines:\n  app:\n    input: {stdin: true}\n    outptu: {stdout: text}\n",
			"4:5: pipelines.app.outptu: unknown; did you mean \"output\"?\n2:3: pipelines.app.output: missing: every configuration needs this key: where lines go"},
		{input("{file: [a]}"),
			"3:13: pipelines.app.input.file: unknown; did you mean \"files\"?\n3:5: pipelines.app.input: not given: set one of files, stdin, listen, http and journal_upload"},
	} {
		_, err := Parse([]byte(tt.text))
		if got := err.Error(); got != tt.want {
			t.Errorf("%s\ngot  %s\nwant %s", tt.text, got, tt.want)
		}
	}
	// Each suggestion must itself be a valid value.
	for _, v := range []string{"{files: [/var/log/a.log]}", `{files: ["/var/log/*.log"]}`, "{stdin: true}", `{listen: "udp:127.0.0.1:514"}`} {
		if _, err := Parse([]byte(input(v))); err != nil {
			t.Error(err)
		}
	}
	for _, v := range []string{"{file: out.log}", "{stdout: text}", `{connect: "tcp:log.example:514"}`} {
		if _, err := Parse([]byte(output(v))); err != nil {
			t.Error(err)
		}
	}
}
