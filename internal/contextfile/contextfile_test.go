package contextfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

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

// A file that is not a context file is refused, and kept.
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

func TestOtherThingsThanFilesAreRefused(t *testing.T) {
	dir := t.TempDir()
	target, link, folder := filepath.Join(dir, "target"), filepath.Join(dir, "link"), filepath.Join(dir, "folder")
	if err := os.WriteFile(target, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Skip(err)
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		link:                             "is a symbolic link; name the file itself",
		folder:                           "is not a regular file; name another file",
		filepath.Join(dir, "none", "of"): "open the folder of the context file: ",
	} {
		if _, _, _, err := Open(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

// Of two processes with one file, the second would overwrite what the first has saved.
func TestAFileIsOfOneProcess(t *testing.T) {
	if !locks {
		t.Skip("this system has no locks")
	}
	path := filepath.Join(t.TempDir(), "context")
	f, _, _, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		synctest.Test(t, func(t *testing.T) { // Open waits
			if _, _, _, err := Open(path); !errors.Is(err, errInUse) {
				t.Errorf("the second process got %v, want %v", err, errInUse)
			}
		})
		if err := f.Save([]byte(`{"v":2}`)); err != nil {
			t.Fatal(err)
		}
	}
	f.Close()
	again, context, _, err := Open(path)
	if err != nil || string(context) != `{"v":2}` {
		t.Fatalf("the next process got %q, %v", context, err)
	}
	defer again.Close()
}

// A file that was removed is made again; one that another program has put there is kept.
func TestReplacedFilesAreKept(t *testing.T) {
	if !locks {
		t.Skip("this system has no locks")
	}
	path := filepath.Join(t.TempDir(), "context")
	f, _, _, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := f.Save([]byte(`{"v":2}`)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.Save([]byte(`{"v":2}`)); !errors.Is(err, errReplaced) {
		t.Errorf("got %v, want %v", err, errReplaced)
	}
	if got, _ := os.ReadFile(path); string(got) != "other" {
		t.Errorf("the file has %q now", got)
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
