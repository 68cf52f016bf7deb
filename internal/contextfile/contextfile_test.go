package contextfile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/symfilter/symfilter/internal/checkpoint"
	"github.com/symfilter/symfilter/internal/fuzztest"
)

func TestContextsAreKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "context")
	want := ""
	for _, saves := range [][]string{{`{"v":2}`}, {`{"v":2,"line":6}`, `{"v":2,"line":7}`}, nil, {`{"v":2,"line":8}`}} {
		f, got, unusable, err := Open(path)
		if err != nil || unusable != nil {
			t.Fatal(err, unusable)
		}
		if string(got) != want {
			t.Errorf("got %q, want %q", got, want)
		}
		for _, context := range saves {
			if err := f.Save([]byte(context)); err != nil {
				t.Fatal(err)
			}
			want = context
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != mode {
		t.Errorf("the file has mode %v (%v), want %v", info.Mode(), err, mode)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); left != nil {
		t.Errorf("temporary files are left: %q", left)
	}
}

func TestOtherFilesAreKept(t *testing.T) {
	for _, test := range []struct {
		name, content  string
		want, unusable error
	}{
		{"a log", "a line\n", errForeign, nil},
		{"an object", `{"v":2,"context":{}}`, errForeign, nil},
		{"a short file", "{}", errForeign, nil},
		{"of a later layout", `{"symfilter_context":2,"v":2}`, errForeign, nil},
		{"cut in the first word", magic[:5], nil, checkpoint.ErrTorn},
		{"cut", magic + `"v":2,"context":{"v"`, nil, checkpoint.ErrTorn},
		{"of another version", magic + `"v":1,"context":{}}`, nil, checkpoint.ErrVersion},
		{"damaged", magic + `"v":2,"context":x}`, nil, checkpoint.ErrDamaged},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "context")
			if err := os.WriteFile(path, []byte(test.content), 0o600); err != nil {
				t.Fatal(err)
			}
			f, context, unusable, err := Open(path)
			if !errors.Is(err, test.want) || !errors.Is(unusable, test.unusable) || context != nil {
				t.Errorf("got %q, %v, %v; want %v, %v", context, unusable, err, test.unusable, test.want)
			}
			if got, _ := os.ReadFile(path); string(got) != test.content {
				t.Errorf("the file has %q now", got)
			}
			if err == nil {
				defer f.Close()
				if err := f.Save([]byte(`{"v":2}`)); err != nil {
					t.Error("an unusable context is not replaced:", err)
				}
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{"", magic, magic + `"v":2,"context":{"v":2}}`, magic + `"v":2,"context":[[[[]]]]}`, magic + `"v":1e9}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		defer fuzztest.Watch(t, content)()
		context, unusable := decode(content)
		if len(context) > 0 && unusable != nil {
			t.Errorf("a context, and %v", unusable)
		}
	})
}
