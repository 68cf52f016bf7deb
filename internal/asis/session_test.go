package asis

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/symbolize"
)

// program is a file with debug information: testdata/build.sh builds it.
var program = filepath.Join("..", "..", "testdata", "debug", ".build-id", "da", "43cc177c674286dc64206eebed748fde112bed.debug")

// byPath finds files by their paths.
type byPath struct{}

func (byPath) Find(_ context.Context, q buildid.Query, _ func(buildid.Attempt)) (*buildid.File, error) {
	if !q.ID.IsZero() {
		return nil, fs.ErrNotExist
	}
	return buildid.OpenRegular(q.Name, "the test")
}

// session returns a Session for the tool name with the arguments args. The Session writes answers
// to the buffer out, and errors to the buffer said.
func session(t testing.TB, name string, args ...string) (s *Session, out, said *bytes.Buffer) {
	t.Helper()
	p := Named(name)
	l := p.Parse(name, "", args)
	if refusal := l.Refusal(); refusal != "" {
		t.Fatal(refusal)
	}
	tree := buildid.NewTree(filepath.Join("..", "..", "testdata", "debug"))
	o := symbolize.Options{Finders: []symbolize.Finder{byPath{}, ByID{tree}}}
	l.Rules(&o)
	sym := symbolize.New(o)
	t.Cleanup(func() {
		if err := sym.Close(); err != nil {
			t.Error(err)
		}
	})
	out, said = new(bytes.Buffer), new(bytes.Buffer)
	return &Session{Line: l, Symbolizer: sym, Context: context.Background(), Out: out, Err: said}, out, said
}

// The expected texts are output of LLVM 19.
func TestAnswersAreThoseOfLLVM(t *testing.T) {
	obj := "--obj=" + program
	const missing = "\n??:0:0\n\n"
	for _, test := range []struct{ name, args, in, want, said string }{
		{"inlined calls", obj, "0x3fa6\n", "Server::cost(Request const&) const\n/src/server/server.cc:34:59\nServer::answer()\n/src/server/server.cc:41:10\n\n", ""},
		{"one line", obj + " -p -a -s", "CODE 0x3fa6\r\n", "0x3fa6: Server::cost(Request const&) const at server.cc:34:59\n (inlined by) Server::answer() at server.cc:41:10\n\n", ""},
		{"without inlined calls", obj + " --no-inlines", "0x3fa6", "Server::answer()\n/src/server/server.cc:34:59\n\n", ""},
		{"GNU", obj + " --output-style=GNU --functions=short", "0x3fa6\n", "cost\n/src/server/server.cc:34\nanswer\n/src/server/server.cc:41\n", ""},
		{"adjusted", obj + " --adjust-vma=0x1000 -a --functions=none", "0x4fa6 and more\n", "0x4fa6\n/src/server/server.cc:34:59\n/src/server/server.cc:41:10\n\n", ""},
		{"JSON", obj + " --output-style=JSON --no-inlines", "0x3fa6\n",
			`{"Address":"0x3fa6","ModuleName":"` + program + `","Symbol":[{"Column":59,"Discriminator":0,"FileName":"/src/server/server.cc","FunctionName":"Server::answer()","Line":34,"StartAddress":"0x3f50","StartFileName":"/src/server/server.cc","StartLine":34}]}` + "\n", ""},
		{"by ID", "", "BUILDID:da43cc177c674286dc64206eebed748fde112bed 0x3fa6\n", "Server::cost(Request const&) const\n/src/server/server.cc:34:59\nServer::answer()\n/src/server/server.cc:41:10\n\n", ""},
		{"a check", obj + " -a", "\n", "??" + missing, ""},
		{"no symbol", obj, "nowhere\n", "??" + missing, ""},
		{"no number", obj, "0x\n", "??" + missing, "llvm-symbolizer: error: '0x': expected a number as module offset\n"},
		{"no file", "", "nofile 0x1\nnofile 0x1\n", "??" + missing + "??" + missing, "llvm-symbolizer: error: 'nofile': No such file or directory\n"},
		{"no file for data", "", "DATA nofile 0x1\n", "??\n0 0\n??:?\n\n", "llvm-symbolizer: error: 'nofile': No such file or directory\n"},
		{"a folder", "", "/ 0x1\n", "??" + missing, "llvm-symbolizer: error: '/': Is a directory\n"},
		{"a tab", "", "nofile\t0x1\n", "??" + missing, "llvm-symbolizer: error: 'nofile\t0x1': no module offset has been specified\n"},
		{"a NUL", "", "nofile 0x\x001\n", "??" + missing, "llvm-symbolizer: error: 'nofile 0x': expected a number as module offset\n"},
		{"a frame", obj, "FRAME 0x3fa6\nFRAME 0x3fa6\n", "??\n\n??\n\n", "llvm-symbolizer: FRAME: symfilter does not read local variables, and answers as if functions had none\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, out, said := session(t, "llvm-symbolizer", strings.Fields(test.args)...)
			if code := s.Run(strings.NewReader(test.in)); code != 0 {
				t.Errorf("exit code %d", code)
			}
			if got := out.String(); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
			if got := said.String(); got != test.said {
				t.Errorf("said %q, want %q", got, test.said)
			}
		})
	}
}

func TestJSONIsIndented(t *testing.T) {
	data := "{\n  \"Address\": \"0x0\",\n  \"Data\": {\n    \"Name\": \"\",\n    \"Size\": \"0x0\",\n    \"Start\": \"0x0\"\n  },\n  \"ModuleName\": \"" + program + "\"\n}"
	s, out, _ := session(t, "llvm-symbolizer", "--output-style=JSON", "-p", "--obj="+program)
	s.Run(strings.NewReader("DATA 0\nDATA 0\n"))
	if want := data + "\n" + data + "\n"; out.String() != want {
		t.Errorf("for lines: got\n%s\nwant\n%s", out, want)
	}
	s, out, _ = session(t, "llvm-symbolizer", "--output-style=JSON", "-p", "--obj="+program, "DATA 0", "DATA 0")
	s.Run(nil)
	indented := strings.ReplaceAll(data, "\n", "\n  ")
	if want := "[\n  " + indented + ",\n  " + indented + "\n]\n"; out.String() != want {
		t.Errorf("for arguments: got\n%s\nwant\n%s", out, want)
	}
}

func TestArchivesAreNotOpened(t *testing.T) {
	for _, text := range []string{"!<arch>\n", "!<thin>\n"} {
		path := filepath.Join(t.TempDir(), "lib.a")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, out, said := session(t, "llvm-symbolizer", "--obj="+path, "1")
		if code := s.Run(nil); code != 1 || out.Len() > 0 || said.String() != "llvm-symbolizer: error: '"+path+"': No object file for requested architecture\n" {
			t.Errorf("code %d, printed %q, said %q", code, out, said)
		}
	}
}

func TestAFileThatCannotBeReadEndsTheSession(t *testing.T) {
	s, out, said := session(t, "llvm-symbolizer", "--obj=nofile", "1")
	if code := s.Run(nil); code != 1 || out.Len() > 0 || said.String() != "llvm-symbolizer: error: 'nofile': No such file or directory\n" {
		t.Errorf("code %d, printed %q, said %q", code, out, said)
	}
	s, out, said = session(t, "llvm-symbolizer", "--obj=nofile", "--output-style=JSON")
	const want = `{"Address":"0x0","Error":{"Message":"No such file or directory"},"ModuleName":"nofile"}` + "\n"
	if code := s.Run(nil); code != 1 || out.String() != want || said.Len() > 0 {
		t.Errorf("code %d, printed %q, said %q", code, out, said)
	}
}

// The session must write each answer before it reads the next question, since a client may wait for
// it.
func TestEachAnswerIsOutAtOnce(t *testing.T) {
	s, _, _ := session(t, "llvm-symbolizer", "--obj="+program, "--no-inlines")
	takeTurns(t, s, "0x3fa6\n", "Server::answer()\n/src/server/server.cc:34:59\n\n")
}

// takeTurns asks s a question 100 times. It reads the answer, which must be want, before it asks
// again.
func takeTurns(t *testing.T, s *Session, question, want string) {
	t.Helper()
	in, questions := io.Pipe()
	answers, out := io.Pipe()
	s.Out = out
	ended := make(chan int)
	go func() { ended <- s.Run(in) }()
	for i := range 100 {
		if _, err := io.WriteString(questions, question); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, len(want))
		if _, err := io.ReadFull(answers, b); err != nil || string(b) != want {
			t.Fatalf("answer %d is %q, %v", i, b, err)
		}
	}
	questions.Close()
	if code := <-ended; code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestLongLinesAreOneQuestion(t *testing.T) {
	s, out, said := session(t, "llvm-symbolizer", "--obj="+program)
	in := strings.Repeat("x", 10*maxQuestion) + "\n0x3fa6 " + strings.Repeat(" y", maxQuestion) + "\n\n"
	if code := s.Run(strings.NewReader(in)); code != 0 {
		t.Errorf("exit code %d", code)
	}
	const want = "??\n??:0:0\n\nServer::cost(Request const&) const\n/src/server/server.cc:34:59\nServer::answer()\n/src/server/server.cc:41:10\n\n??\n??:0:0\n\n"
	if out.String() != want || said.Len() > 0 {
		t.Errorf("printed %q, said %.200q", out, said)
	}
}

// The session must open a module only for its first question, as LLVM does. Later questions must be
// answered even if the file has been removed.
func TestAModuleIsOpenedOnce(t *testing.T) {
	copied := filepath.Join(t.TempDir(), "program")
	b, err := os.ReadFile(program)
	if err == nil {
		err = os.WriteFile(copied, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	s, out, said := session(t, "llvm-symbolizer", "--obj="+copied, "--no-inlines")
	questions, ask := io.Pipe()
	go func() {
		io.WriteString(ask, "0x3fa6\n")
		io.WriteString(ask, "0x3fa6\n") // read after the answer to the first question
		os.Remove(copied)
		io.WriteString(ask, "0x3fa6\n")
		ask.Close()
	}()
	s.Run(questions)
	if want := strings.Repeat("Server::answer()\n/src/server/server.cc:34:59\n\n", 3); out.String() != want || said.Len() > 0 {
		t.Errorf("printed %q, said %q", out, said)
	}
}

func TestFilesThatCannotBeReadAreForgotten(t *testing.T) {
	s, _, _ := session(t, "llvm-symbolizer")
	s.Err = io.Discard
	var in strings.Builder
	for i := range 2 * maxModules {
		fmt.Fprintf(&in, "nofile%d 1\n", i)
	}
	s.Run(strings.NewReader(in.String()))
	if n := len(s.usable); n == 0 || n > maxModules {
		t.Errorf("%d paths are kept", n)
	}
}

// Any questions must be answered within bounds of time and memory. Each question must get at least
// one line.
func FuzzQuestions(f *testing.F) {
	for _, in := range []string{"0x3fa6\n", "DATA 0x4020\nmain+1\n", "FILE:a 1\nBUILDID:00 2\n'a b' 3\n\"x", "CODE \nFRAME 0\n", "\x00\n\r\n 07 0b1 0o7"} {
		f.Add([]byte(in), byte(0))
		f.Add([]byte(in), byte(3))
	}
	f.Add([]byte("main+1\n+\n.text+0x10\nServer::answer()\n-1\n zz\n3fa6"), byte(128))
	f.Add([]byte("main+1\n+\n(.text)+0x10\nmain-1\n-1\n zz\n3fa6\n4020"), byte(135))
	f.Fuzz(func(t *testing.T, in []byte, flags byte) {
		defer fuzztest.Watch(t, in)()
		name := [...]string{"llvm-symbolizer", "llvm-addr2line"}[flags&1]
		file, err := filepath.Abs(program)
		if err != nil {
			t.Fatal(err)
		}
		args := []string{"--obj=" + program, "--output-style=" + [...]string{"LLVM", "GNU", "JSON"}[flags>>1%3]}
		if flags&64 != 0 {
			args = args[1:]
			// in an empty folder, questions cannot open files of the package by relative paths
			t.Chdir(t.TempDir())
		}
		if flags&128 != 0 {
			name, args = "addr2line", []string{"-e" + file, "-" + [...]string{"a", "f", "fi", "afiCps"}[flags&3]}
			if flags&4 != 0 {
				name, args = "eu-addr2line", []string{"-e" + file, "-" + [...]string{"a", "fS", "fi", "afixsC"}[flags&3]}
			}
		}
		s, out, _ := session(t, name, args...)
		s.Err = io.Discard
		if code := s.Run(bytes.NewReader(in)); code != 0 && name != "eu-addr2line" {
			t.Errorf("exit code %d", code)
		}
		if name == "eu-addr2line" {
			return // it prints nothing for a line that is not a question
		}
		questions := bytes.Count(in, []byte{'\n'})
		if n := len(in); n > 0 && in[n-1] != '\n' {
			questions++
		}
		if got := bytes.Count(out.Bytes(), []byte{'\n'}); got < questions {
			t.Errorf("%d lines for %d questions", got, questions)
		}
	})
}
