package input

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/filter"
)

// A header in a journal must make the frames after it resolvable, even if other fields are between
// the header and the first frame. A restart must not lose the header.
func TestHeadersInJournals(t *testing.T) {
	const (
		before = "__CURSOR=a\n_PID=7\nMESSAGE=------ STACK TRACE ------\n_UID=1\n\n__CURSOR=b\nMESSAGE=EIP:\nA=\nB=1\n\n"
		frames = "__CURSOR=c\nMESSAGE=/opt/a.out(+0x18b) [0x55d0c0a0018b]\n\n__CURSOR=d\nMESSAGE=\n\n__CURSOR=d\nMESSAGE=Backtrace:\n\n__CURSOR=e\nMESSAGE=/opt/a.out(+0x18d) [0x55d0c0a0018d]\n\n"
		plain  = "------ STACK TRACE ------\nEIP:\n/opt/a.out(+0x18b) [0x55d0c0a0018b]\n\nBacktrace:\n/opt/a.out(+0x18d) [0x55d0c0a0018d]\n"
	)
	o := dialectOptions(t)
	want := filtered(o, plain)
	out := envelope(t, Journal, o, before+frames, nil)
	got := ""
	for _, text := range messagesOf(t, out) {
		got += text + "\n"
	}
	if diff := cmp.Diff(want, got); diff != "" || want == plain {
		t.Errorf("alone (-), in a journal (+):\n%s\n%s", diff, want)
	}
	if restored := interrupted(t, Journal, o, before+frames, len(before)); restored != out {
		t.Errorf("after a restart: %s", cmp.Diff(out, restored))
	}
	if without := envelope(t, Journal, o, frames, nil); without == out[len(before):] {
		t.Error("the header makes no difference")
	}
}

// An empty message must count as a line, even in an entry without other text. It ends a stack, so
// the next frame, which gdb has wrapped, must not be joined.
func TestEmptyMessagesOfJournalsAreLines(t *testing.T) {
	const frame, end = "#6  0x00007ffff7fbc189 in one, or two, or", "    () from /opt/shop/libledger.so"
	o := sampleOptions(t)
	o.Output = filter.JSON
	for between, want := range map[string]int{"": 1, "MESSAGE=\n\n": 0, "MESSAGE\n\x00\x00\x00\x00\x00\x00\x00\x00\n\n": 0, "A=1\n\n": 1} {
		log := "__CURSOR=a\nMESSAGE=" + frame + "\n\n" + between + "_PID=1\nMESSAGE=" + end + "\n\n"
		if out := envelope(t, Journal, o, log, nil); strings.Count(out, `"elements":`) != want {
			t.Errorf("between the lines is %q: want %d frames:\n%s", between, want, out)
		}
	}
}

func TestFirstTextMayBeEmpty(t *testing.T) {
	for in, want := range map[string]Format{
		"{\"message\":\"\"}\n": JSON, "{\"MESSAGE\":[65]}\n": JSON, "{\"message\":[65]}\n": Markup, "{\"message\":1}\n": Markup,
		"{\"s\":\"I\",\"msg\":\"BACKTRACE\",\"attr\":{}}\n": JSON,
	} {
		if got := recognise([]byte(in), ended, DefaultFields()); got != want {
			t.Errorf("%q is %v, want %v", in, got, want)
		}
	}
}
