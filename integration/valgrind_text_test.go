//go:build linux

package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// reportOf returns a report of Valgrind with text in every place controlled by the program or by
// the user who runs it.
func reportOf(text string) []byte {
	return []byte(strings.ReplaceAll(`<?xml version="1.0"?>

<valgrindoutput>

<protocolversion>4</protocolversion>
<protocoltool>memcheck</protocoltool>

<preamble>
  <line>@</line>
</preamble>

<pid>7</pid>
<ppid>1</ppid>
<tool>@</tool>

<usercomment>@</usercomment>

<args>
  <vargv>
    <exe>valgrind</exe>
    <arg>@</arg>
  </vargv>
  <argv>
    <exe>@</exe>
    <arg>@</arg>
  </argv>
</args>

<status>
  <state>RUNNING</state>
  <time>@</time>
</status>

<clientmsg>
  <tid>1</tid>
  <threadname>@</threadname>
  <text>@</text>
</clientmsg>

<error>
  <unique>@</unique>
  <tid>@</tid>
  <threadname>@</threadname>
  <kind>@</kind>
  <what>@</what>
  <stack>
    <frame>
      <ip>0x1000</ip>
      <obj>/nowhere/@</obj>
      <fn>@</fn>
      <dir>/@</dir>
      <file>@</file>
      <line>3</line>
    </frame>
    <frame>
      <ip>@</ip>
    </frame>
  </stack>
  <auxwhat>@</auxwhat>
  <unknown>@</unknown>
  <suppression>
    <sname>@</sname>
    <rawtext>
<![CDATA[
@
]]>
    </rawtext>
  </suppression>
</error>

<suppcounts>
  <pair>
    <count>1</count>
    <name>@</name>
  </pair>
</suppcounts>

</valgrindoutput>
`, "@", text))
}

// Text controlled by a program must affect only the places of a report that show this text.
func TestHostileTextStaysWhereItIs(t *testing.T) {
	const harmless = "HARMLESS"
	for _, args := range [][]string{{"--output=text"}, {"--output=json"}, {"--output=markup"}, {"--color=always"}, {"--color=never"}} {
		args = append(args, "-q", "-")
		want := run(t, reportOf(harmless), command, args...)
		for _, hostile := range []string{"{{{reset}}}", "{{{module:0:x:elf:aa}}}", "{{{mmap:0:0x2000:load:0:rx:0}}}", "{{{bt:0:0x1000}}}", "{{{symbol:_Z1fv}}}", "{{{", "{{", "}}}", "{{{hexdict:a", "\x1b[31m", "\x1b]0;title\x07", "\x1b[", "\u009b31m", "\u202e"} {
			got := run(t, reportOf("QQ"+hostile+"ZZ"), command, args...)
			shown := "QQ" + strings.SplitN(strings.SplitN(got, "QQ", 2)[1], "ZZ", 2)[0] + "ZZ"
			if strings.ReplaceAll(got, shown, harmless) != want || strings.Contains(got, "\x1b") {
				t.Errorf("%s of %q: got\n%s\nwant, but for the text,\n%s", args[0], hostile, got, want)
			}
		}
	}
}

// llvm-symbolizer must show the text of a report as symfilter does.
func TestHostileTextStaysTextForLLVM(t *testing.T) {
	need(t, "llvm-symbolizer-19")
	for _, hostile := range []string{"{{{reset}}}", "{{{module:0:x:elf:aa}}}", "{{{"} {
		report := reportOf(hostile)
		markup := run(t, report, command, "-q", "--output=markup", "-")
		got := run(t, []byte(markup), "llvm-symbolizer-19", "--filter-markup")
		if want := run(t, report, command, "-q", "-"); strings.TrimSpace(got) != strings.TrimSpace(want) {
			t.Errorf("%q: got\n%s\nwant\n%s", hostile, got, want)
		}
	}
}

// An error must be printed as soon as its end is in the pipe, even without a line end, while the
// program continues.
func TestErrorsOfARunningProgramAreOutAtOnce(t *testing.T) {
	for _, output := range []string{"text", "json", "markup"} {
		t.Run(output, func(t *testing.T) {
			p := start(t, "-q", "--output="+output)
			got := make(chan string)
			go func() {
				defer close(got)
				b := make([]byte, 64<<10)
				for {
					n, err := p.out.Read(b)
					if n > 0 {
						got <- string(b[:n])
					}
					if err != nil {
						return
					}
				}
			}()
			in := "<?xml version=\"1.0\"?>\n\n<valgrindoutput>\n"
			out := ""
			for i := range 3 {
				in += fmt.Sprintf("\n\n<error>\n  <unique>%#x</unique>\n  <kind>Kind</kind>\n  <what>error %[1]d</what>\n  <stack>\n    <frame>\n      <ip>%#[2]x</ip>\n    </frame>\n  </stack>\n</error>", i, 0xabc0+i)
				if _, err := p.in.Write([]byte(in)); err != nil {
					t.Fatal(err)
				}
				in = ""
				deadline := time.After(time.Minute)
				for !strings.Contains(out, fmt.Sprintf("abc%x", i)) {
					select {
					case b, ok := <-got:
						if !ok {
							t.Fatalf("the output ended behind %q", out)
						}
						out += b
					case <-deadline:
						t.Fatalf("error %d is not out; got %q", i, out)
					}
				}
			}
			p.in.Close()
			for range got {
			}
			for line := range strings.Lines(out) {
				if output == "json" && !json.Valid(bytes.TrimSpace([]byte(line))) {
					t.Errorf("half a line: %s", line)
				}
			}
		})
	}
}
