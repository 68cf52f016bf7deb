package symbolize

import (
	"context"
	"testing"
)

// If a function also has an internal name of glibc, the other name must be shown, from the file and
// from its index. With Reaching, the name must be the one that llvm-symbolizer shows.
func TestInternalNamesOfGlibcAreNotShown(t *testing.T) {
	f := build(t, "aliases", `extern "C" {
int __GI_spawn(int x) { return x * 3; }
int spawn(int x) __attribute__((alias("__GI_spawn")));
}`)
	dir := t.TempDir()
	tests := []struct {
		name string
		o    Options
	}{
		{"file", Options{}},
		{"file, to be indexed", Options{IndexDir: dir}},
		{"index", Options{IndexDir: dir}},
		{"as LLVM", Options{Reaching: true}},
	}
	addrs := map[string]uint64{}
	for _, s := range f.symbols(t) {
		addrs[s.Name] = s.Value
	}
	for _, tt := range tests {
		s := open(t, tt.o, oneFile{f, "here"})
		for _, name := range []string{"spawn"} {
			frames, err := s.Ask(context.Background(), nil, f.at(addrs[name]), Policy{})
			if err != nil || len(frames) != 1 {
				t.Fatalf("%s: %v, %v", tt.name, frames, err)
			}
			if tt.o.Reaching {
				if got, want := asLLVM(frames), f.llvm(t, []uint64{addrs[name]})[addrs[name]]; got != want {
					t.Errorf("%s: got %s, want %s", tt.name, got, want)
				}
			} else if frames[0].Func != name {
				t.Errorf("%s: %s is shown as %s", tt.name, name, frames[0].Func)
			}
		}
		if tt.o.IndexDir != "" {
			s.Close()
		}
	}
}
