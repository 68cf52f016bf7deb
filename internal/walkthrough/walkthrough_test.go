package walkthrough

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBlocks(t *testing.T) {
	const page = "# A page\n\n```sh\nmake\n```\n\nText.\n\n```sh\necho 1\necho 2\n```\n\n```text\n1\n2\n```\n\n```sh manual\nadb logcat\n```\n\n```yaml\na: 1\n```\n"
	got, err := Blocks(page)
	if err != nil {
		t.Fatal(err)
	}
	want := []Block{
		{Line: 4, Text: "make\n"},
		{Line: 10, Text: "echo 1\necho 2\n", Shows: true, Output: []string{"1", "2"}},
		{Line: 20, Text: "adb logcat\n", Manual: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}

func TestBlocksOfDamagedPages(t *testing.T) {
	for page, want := range map[string]string{
		"```sh\nmake\n":   "line 1: the block has no end",
		"```text\n1\n```": "line 1: output without commands before it",
		"```sh\nmake\n```\nText.\n```text\n1\n```":   "line 5: output without commands before it",
		"```sh\nmake\n```\n```sh maybe\nmake\n```":   "line 4: ```sh maybe: write ```LANGUAGE or ```sh manual",
		"```sh\nmake\n```\n\n```\nwhat is this\n```": "line 5: ```: write ```LANGUAGE or ```sh manual",
	} {
		if _, err := Blocks(page); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", page, err, want)
		}
	}
}

func TestEqual(t *testing.T) {
	for _, tt := range []struct {
		name, shown, printed string
		want                 bool
	}{
		{"the same", "a\nb", "a\nb", true},
		{"another line", "a\nb", "a\nc", false},
		{"a line less", "a\nb", "a", false},
		{"a line more", "a", "a\nb", false},
		{"dots for lines within", "a\n...\nd", "a\nb\nc\nd", true},
		{"dots for no line", "a\n...\nb", "a\nb", true},
		{"dots at the end", "a\n...", "a\nb\nc", true},
		{"dots at the beginning", "...\nc", "a\nb\nc", true},
		{"a line that does not come after dots", "...\nd", "a\nb\nc", false},
		{"lines in another order", "...\nb\n...\na\n...", "a\nb", false},
		{"no output", "", "", true},
		{"addresses, processes and build IDs", "==1== at 0x55d6f1a5b4b9, 93ac61ec5a8eb1396f9fbd350e3169a558528a40", "==4711== at 0x7f0123456789, 779e1ed32e11627838c3d1658cabab0af2a008bd", true},
		{"offsets", "a+0x14b9", "a+0x14ba", false},
		{"lines of code", "a.c:6:48", "a.c:6:47", false},
	} {
		if got := Equal(strings.Split(tt.shown, "\n"), strings.Split(tt.printed, "\n")); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

// A recorder is a test that keeps its error messages.
type recorder struct {
	testing.TB
	faults []string
}

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, _ ...any) {
	r.faults = append(r.faults, strings.SplitN(format, ":", 3)[1])
}

// Run must use one shell for all blocks: a block starts in the folder in which the previous block
// ended.
func TestRunReportsWhatDiffers(t *testing.T) {
	blocks := []Block{
		{Text: "mkdir a && cd a\n"},
		{Text: "pwd; echo $HOME\n", Shows: true, Output: []string{"/home/me/symfilter/a", "/home/me"}},
		{Text: "not to be run\n", Manual: true},
		{Text: "echo no end >&2; printf x\n", Shows: true, Output: []string{"no end", "x"}},
		{Text: "false\n"},
		{Text: "echo 1; false\n", Shows: true, Output: []string{"1"}},
		{Text: "echo 1\n", Shows: true, Output: []string{"2"}},
	}
	r := &recorder{TB: t}
	Run(r, Place{Dir: t.TempDir(), Home: t.TempDir(), Env: []string{"PATH=/usr/bin:/bin"}}, blocks)
	if diff := cmp.Diff([]string{" exit status %s of\n%s\nwhich printed\n%s", " the page shows\n%s\n\nbut\n%s\nprints\n%s"}, r.faults); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}
