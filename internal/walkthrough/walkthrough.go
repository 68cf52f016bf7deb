// Package walkthrough runs the commands of a page of documentation as a reader types them: in
// one shell, in the order of the page. It compares their output with the page. Only tests
// import it.
//
// A block of the language sh holds commands. A block of the language text right after it shows
// their output, including standard error. A line "..." in the output matches any lines. A block
// without output must succeed. Commands of a block "sh manual" need things that a test lacks,
// such as a phone: they are counted, and not run.
package walkthrough

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// Clone and Home are folders in the output that pages show: the clone of the repository, and the
// reader's home folder.
const (
	Clone = Home + "/symfilter"
	Home  = "/home/me"
)

// longest bounds the time for a page: a page that waits forever fails.
const longest = 5 * time.Minute

// A Block is a block of commands on a page, with the output that the page shows after it.
type Block struct {
	Line   int // line number of its first command, from 1
	Text   string
	Manual bool     // it is not run
	Shows  bool     // output is shown after it
	Output []string // lines
}

// fence matches the first line of a block of code.
var fence = regexp.MustCompile("^```(\\w+)( manual)?$")

// Blocks returns the blocks of commands of a page in Markdown. It returns an error for a block that
// has no end, or output without commands.
func Blocks(page string) (all []Block, err error) {
	lines := strings.Split(page, "\n")
	var last *Block // the block whose output may come next
	for i := 0; i < len(lines); i++ {
		m := fence.FindStringSubmatch(lines[i])
		if m == nil {
			if strings.HasPrefix(lines[i], "```") {
				return nil, fmt.Errorf("line %d: %s: write ```LANGUAGE or ```sh manual", i+1, lines[i])
			}
			if strings.TrimSpace(lines[i]) != "" {
				last = nil
			}
			continue
		}
		from := i + 1
		n := slices.Index(lines[from:], "```")
		if n < 0 {
			return nil, fmt.Errorf("line %d: the block has no end", i+1)
		}
		body := lines[from : from+n]
		i = from + n
		switch {
		case m[1] == "sh":
			all = append(all, Block{Line: from + 1, Text: strings.Join(body, "\n") + "\n", Manual: m[2] != ""})
			last = &all[len(all)-1]
		case m[1] == "text" && last == nil:
			return nil, fmt.Errorf("line %d: output without commands before it", from)
		case m[1] == "text":
			last.Shows, last.Output, last = true, body, nil
		}
	}
	return all, nil
}

// A Place has the folders and the environment in which the commands of a page run.
type Place struct {
	Dir  string   // a clone, in which the page may write
	Home string   // an empty folder
	Env  []string // the environment, without HOME
}

// Run runs the blocks in one shell. It reports each block with different output, and each block
// without output that fails. A later block must end processes left in the background.
func Run(t testing.TB, p Place, blocks []Block) {
	t.Helper()
	const mark = "--- end of block "
	var script strings.Builder
	for i, b := range blocks {
		if !b.Manual {
			fmt.Fprintf(&script, "%s\nprintf '\\n%s%d %%d\\n' $?\n", b.Text, mark, i)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", script.String())
	cmd.Dir, cmd.Env = p.Dir, append(slices.Clip(p.Env), "HOME="+p.Home)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	rest := strings.NewReplacer(p.Dir, Clone, p.Home, Home).Replace(out.String())
	for i, b := range blocks {
		if b.Manual {
			continue
		}
		printed, after, found := strings.Cut(rest, fmt.Sprintf("\n%s%d ", mark, i))
		if !found {
			t.Fatalf("line %d: the shell ended (%v) in this block:\n%s\nit printed:\n%s", b.Line, err, b.Text, rest)
		}
		var status string
		status, rest, _ = strings.Cut(after, "\n")
		switch lines := strings.Split(strings.TrimSuffix(printed, "\n"), "\n"); {
		case b.Shows && !Equal(b.Output, lines):
			t.Errorf("line %d: the page shows\n%s\n\nbut\n%s\nprints\n%s", b.Line, strings.Join(b.Output, "\n"), b.Text, printed)
		case !b.Shows && status != "0":
			t.Errorf("line %d: exit status %s of\n%s\nwhich printed\n%s", b.Line, status, b.Text, printed)
		}
	}
}

// Equal reports whether the printed lines equal the lines on the page. It ignores text that
// differs between runs or compilers: addresses, offsets in modules, process IDs and build IDs.
func Equal(shown, printed []string) bool {
	if len(shown) == 0 {
		return len(printed) == 0 || len(printed) == 1 && printed[0] == ""
	}
	if shown[0] == "..." {
		for i := range len(printed) + 1 {
			if rest := printed[i:]; len(shown) == 1 || len(rest) > 0 && Equal(shown[1:], rest) {
				return true
			}
		}
		return false
	}
	if len(printed) == 0 || constant(shown[0]) != constant(printed[0]) {
		return false
	}
	if len(shown) == 1 {
		return len(printed) == 1
	}
	return Equal(shown[1:], printed[1:])
}

// changing matches text that differs from run to run, with its replacement for the comparison.
var changing = []struct {
	re *regexp.Regexp
	by string
}{
	{regexp.MustCompile(`0x[0-9a-f]{5,}`), "0xADDRESS"},
	{regexp.MustCompile(`\+0x[0-9a-f]+\)`), "+OFFSET)"},
	{regexp.MustCompile(`\b[0-9a-f]{40}\b`), "BUILD-ID"},
	{regexp.MustCompile(`==\d+==`), "==PID=="},
}

// constant returns a line with constants in place of the text that differs from run to run.
func constant(line string) string {
	for _, c := range changing {
		line = c.re.ReplaceAllString(line, c.by)
	}
	return strings.TrimRight(line, " \t\r")
}
