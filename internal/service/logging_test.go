package service

import (
	"bytes"
	"errors"
	"log/slog"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLogRecordsHaveTheFormatOfTheirReader(t *testing.T) {
	timed := regexp.MustCompile(`time=\S+|"time":"[^"]+"`)
	for _, tt := range []struct {
		name    string
		format  Format
		journal bool
		want    string
	}{
		{"text", Auto, false, `TIME level=INFO msg=reloaded pipelines=2
TIME level=WARN msg="output blocked" output=app seconds=30
TIME level=ERROR msg="a\nb" g.error="no\nspace"
`},
		{"text by name", Text, false, `TIME level=INFO msg=reloaded pipelines=2
TIME level=WARN msg="output blocked" output=app seconds=30
TIME level=ERROR msg="a\nb" g.error="no\nspace"
`},
		{"JSON", JSON, false, `{TIME,"level":"INFO","msg":"reloaded","pipelines":2}
{TIME,"level":"WARN","msg":"output blocked","output":"app","seconds":30}
{TIME,"level":"ERROR","msg":"a\nb","g":{"error":"no\nspace"}}
`},
		{"the journal", Auto, true, `<6>reloaded pipelines=2
<4>output blocked output=app seconds=30
<3>a b g.error="no\nspace"
`},
		{"text for the journal", Text, true, `<6>TIME level=INFO msg=reloaded pipelines=2
<4>TIME level=WARN msg="output blocked" output=app seconds=30
<3>TIME level=ERROR msg="a\nb" g.error="no\nspace"
`},
		{"JSON for the journal", JSON, true, `<6>{TIME,"level":"INFO","msg":"reloaded","pipelines":2}
<4>{TIME,"level":"WARN","msg":"output blocked","output":"app","seconds":30}
<3>{TIME,"level":"ERROR","msg":"a\nb","g":{"error":"no\nspace"}}
`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			l := slog.New(newHandler(&out, formatOf(tt.format), slog.LevelInfo, tt.journal))
			l.Debug("not printed")
			l.Info("reloaded", "pipelines", 2)
			l.With("output", "app").Warn("output blocked", "seconds", 30)
			l.WithGroup("g").Error("a\nb", "error", errors.New("no\nspace"))
			if diff := cmp.Diff(tt.want, timed.ReplaceAllString(out.String(), "TIME")); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestEachLevelHasItsPriority(t *testing.T) {
	var out bytes.Buffer
	level := new(slog.LevelVar)
	level.Set(slog.LevelDebug)
	l := slog.New(newHandler(&out, new(FormatVar), level, true))
	l.Debug("one")
	l.Info("two", "time", "kept", "level", "kept")
	l.Warn("three")
	l.Error("four")
	level.Set(slog.LevelError) // by a reload
	l.Warn("not printed")
	if want := "<7>one\n<6>two time=kept level=kept\n<4>three\n<3>four\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func formatOf(f Format) *FormatVar {
	v := new(FormatVar)
	v.Set(f)
	return v
}

func TestTheFormatChangesForLoggersThatExist(t *testing.T) {
	var out bytes.Buffer
	format := formatOf(Text)
	l := slog.New(newHandler(&out, format, slog.LevelInfo, false)).With("pipeline", "a").WithGroup("g")
	l.Info("one", "n", 1)
	format.Set(JSON) // by a reload
	l.Info("two", "n", 2)
	timed := regexp.MustCompile(`time=\S+|"time":"[^"]+"`)
	want := "TIME level=INFO msg=one pipeline=a g.n=1\n" + `{TIME,"level":"INFO","msg":"two","pipeline":"a","g":{"n":2}}` + "\n"
	if diff := cmp.Diff(want, timed.ReplaceAllString(out.String(), "TIME")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
