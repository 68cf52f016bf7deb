package debuginfod

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestOptionsFromEnv(t *testing.T) {
	tests := []struct {
		env  string // NAME=VALUE without DEBUGINFOD_, separated by |
		want Options
		err  string
	}{
		{"", Options{}, ""},
		{"URLS= http://a  ima:ignore\thttps://b/x/ |HEADERS_FILE=/h|PROGRESS=1|VERBOSE=1",
			Options{URLs: []string{"http://a", "ima:ignore", "https://b/x/"}, HeadersFile: "/h", ShowProgress: true, Verbose: true}, ""},
		{"TIMEOUT=5|MAXTIME=60|MAXSIZE=1000|RETRY_LIMIT=7",
			Options{Timeout: 5 * time.Second, MaxTime: time.Minute, MaxSize: 1000, RetryLimit: 7}, ""},
		{"TIMEOUT=0|MAXTIME=0|MAXSIZE=0|RETRY_LIMIT=0", Options{Timeout: -1, RetryLimit: -1}, ""},
		{"TIMEOUT=-1|MAXTIME=-1|MAXSIZE=-1|RETRY_LIMIT=-1", Options{Timeout: -1, RetryLimit: -1}, ""},
		{"TIMEOUT=9223372036854775807|RETRY_LIMIT=9999999", Options{Timeout: 24 * time.Hour, RetryLimit: 100}, ""},
		{"TIMEOUT=5s|MAXSIZE=1G|MAXTIME=6", Options{MaxTime: 6 * time.Second}, "DEBUGINFOD_TIMEOUT, DEBUGINFOD_MAXSIZE: want a whole number"},
	}
	for _, tt := range tests {
		env := map[string]string{}
		for v := range strings.SplitSeq(tt.env, "|") {
			name, value, _ := strings.Cut(v, "=")
			env["DEBUGINFOD_"+name] = value
		}
		got, err := OptionsFromEnv(func(name string) string { return env[name] })
		said := ""
		if err != nil {
			said = err.Error()
		}
		if tt.want.URLs == nil {
			tt.want.URLs = []string{}
		}
		if got.URLs == nil {
			got.URLs = []string{}
		}
		if diff := cmp.Diff(got, tt.want); diff != "" || said != tt.err {
			t.Errorf("%s: got error %q, want %q; options (-got +want):\n%s", tt.env, said, tt.err, diff)
		}
	}
}

func TestSystemURLs(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "b.urls", []byte("https://b https://c\n"), 0o644)
	put(t, dir, "a.urls", []byte("# ours\nima:ignore https://a\n\n"), 0o644)
	put(t, dir, "a.urls.rpmsave", []byte("https://old\n"), 0o644)
	got, err := SystemURLs(dir)
	if diff := cmp.Diff(got, []string{"ima:ignore", "https://a", "https://b", "https://c"}); diff != "" || err != nil {
		t.Errorf("%v (-got +want):\n%s", err, diff)
	}
	if got, err := SystemURLs(filepath.Join(dir, "none")); got != nil || err != nil {
		t.Errorf("no directory: got %q, %v", got, err)
	}
	put(t, dir, "c.urls", make([]byte, maxURLsFile+1), 0o644)
	if _, err := SystemURLs(dir); err == nil {
		t.Error("a file without an end was read")
	}
}

func TestServersAreKnownByTheirURLs(t *testing.T) {
	c := newClient(t, Options{}, "https://a/", "https://a", "https://me:secret@b/x//", "ima:enforcing", "https://c", "ima:strict", "https://d")
	want := []Server{
		{"https://a", ""}, {"https://b/x", ""},
		{"https://c", "refused: ima:enforcing asks for signatures that symfilter cannot check; write ima:ignore to accept the server's files without this check"},
		{"https://d", `refused: "ima:strict" is not a known tag; the only one is ima:ignore`},
	}
	if diff := cmp.Diff(c.Servers(), want); diff != "" {
		t.Error("-got +want:\n" + diff)
	}
	for _, o := range []Options{{MaxSize: -1}, {MaxTime: -1}, {CacheMax: -1}} {
		if _, err := New(o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
}
