package symbolize

import (
	"context"
	"crypto/sha256"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/buildid"
)

// Options for a drop-in replacement have the same effect as llvm-symbolizer's flags.
func TestOptionsAreThoseOfLLVM(t *testing.T) {
	f := build(t, "shop", source)
	stripped := f.variant(t, "--strip-debug")
	tests := []struct {
		name  string
		file  fixture
		o     Options
		flags []string
	}{
		{"defaults", f, Options{Reaching: true}, nil},
		{"short names", f, Options{Names: ShortNames, Reaching: true}, []string{"--functions=short"}},
		{"no names", f, Options{Names: NoNames, Reaching: true}, []string{"--functions=none"}},
		{"symbols only", stripped, Options{Reaching: true}, nil},
		{"symbols only, no names", stripped, Options{Names: NoNames, Reaching: true}, []string{"--functions=none"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			addrs := append(f.textAddresses(t), f.beyond(t)...)
			want := tt.file.llvm(t, addrs, tt.flags...)
			s := open(t, tt.o, oneFile{tt.file, "here"})
			differ := 0
			for _, a := range addrs {
				frames, err := s.Ask(context.Background(), nil, tt.file.at(a), Policy{})
				if err != nil {
					t.Fatal(err)
				}
				w := want[a]
				if tt.o.Names == NoNames { // no names are printed
					w = strings.ReplaceAll("\n"+w, "\n", "\n??\n")[1:]
					w = strings.TrimSuffix(w, "??\n")
				}
				if got := asLLVM(frames); got != w {
					if differ++; differ < 5 {
						t.Errorf("%#x\n got\n%s\nwant\n%s", a, got, w)
					}
				}
			}
			if differ > 0 {
				t.Errorf("%d of %d addresses differ", differ, len(addrs))
			}
		})
	}
}

// beyond returns addresses near the ends of the loaded sections, and far beyond them.
func (f fixture) beyond(t testing.TB) (addrs []uint64) {
	t.Helper()
	e, err := elf.Open(f.path)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for _, s := range e.Sections {
		if s.Flags&elf.SHF_ALLOC != 0 && s.Addr > 0 {
			addrs = append(addrs, s.Addr-1, s.Addr, s.Addr+s.Size-1, s.Addr+s.Size, s.Addr+s.Size+100)
		}
	}
	return append(addrs, 1<<20, 1<<40)
}

func TestReachingDataIsThatOfLLVM(t *testing.T) {
	f := build(t, "shop", source)
	addrs := f.beyond(t)
	for _, s := range f.symbols(t) {
		addrs = append(addrs, s.Value, s.Value+s.Size-1, s.Value+s.Size, s.Value+s.Size+16)
	}
	var in strings.Builder
	for _, a := range addrs {
		fmt.Fprintf(&in, "DATA %#x\n", a)
	}
	cmd := exec.Command(tool(t, "llvm-symbolizer-19"), "--obj="+f.path)
	cmd.Stdin = strings.NewReader(in.String())
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	answers := strings.Split(strings.TrimSuffix(string(out), "\n\n"), "\n\n")
	if len(answers) != len(addrs) {
		t.Fatalf("%d answers to %d addresses", len(answers), len(addrs))
	}
	s := open(t, Options{Reaching: true}, oneFile{f, "here"})
	for i, a := range addrs {
		v, err := s.AskData(context.Background(), f.at(a), Policy{})
		if err != nil && !errors.Is(err, ErrNoSymbol) {
			t.Fatal(err)
		}
		got := "??"
		if err == nil {
			got = v.Name
		}
		if want, _, _ := strings.Cut(answers[i], "\n"); got != want {
			t.Errorf("%#x: got %q, want %q", a, got, want)
		}
	}
}

// CompDir and Dir are the lengths of what llvm-symbolizer omits with --relativenames and
// --basenames.
func TestPathsAreThoseOfLLVM(t *testing.T) {
	for _, compiler := range [][]string{
		{"gcc", "-gdwarf-4"}, {"gcc", "-gdwarf-5"}, {"clang-19", "-gdwarf-4"}, {"clang-19", "-gdwarf-5"},
		{"clang-19", "-gdwarf-5", "-fdebug-compilation-dir=."}, {"gcc", "-gdwarf-5", "-fdebug-prefix-map=sub=/else"},
	} {
		for _, absolute := range []bool{false, true} {
			t.Run(strings.Join(compiler, " ")+fmt.Sprint(" ", absolute), func(t *testing.T) {
				tool(t, compiler[0])
				dir := t.TempDir()
				for name, text := range map[string]string{
					"sub/a.c":       "#include \"inc/b.h\"\n#include \"../up.h\"\nint f(int x) { return b(x) + up(x); }\n",
					"sub/inc/b.h":   "static int b(int x) { return x * x; }\n",
					"up.h":          "static int up(int x) { return -x; }\n",
					"sub/../main.c": "int g(int x) { return x; }\n",
				} {
					path := filepath.Join(dir, name)
					if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
						t.Fatal(err)
					}
				}
				id := sha256.Sum256([]byte(t.Name()))
				f := fixture{path: filepath.Join(dir, "paths.so")}
				f.id, _ = buildid.FromBytes(id[:20])
				args := append(compiler[1:], "-shared", "-fPIC", "-Wl,--build-id=0x"+f.id.String(), "-o", f.path)
				for _, src := range []string{"sub/a.c", "./main.c"} {
					if absolute {
						src = filepath.Join(dir, src)
					}
					args = append(args, src)
				}
				cmd := exec.Command(compiler[0], args...)
				cmd.Dir = dir
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%s: %v\n%s", cmd, err, out)
				}
				addrs := f.textAddresses(t)
				s := open(t, Options{Reaching: true}, oneFile{f, "here"})
				for _, flag := range []string{"--relativenames", "--basenames"} {
					want := f.llvm(t, addrs, flag)
					for _, a := range addrs {
						frames, err := s.Ask(context.Background(), nil, f.at(a), Policy{})
						if err != nil {
							t.Fatal(err)
						}
						for i, fr := range frames {
							switch {
							case fr.File == "":
							case flag == "--relativenames":
								frames[i].File = fr.File[fr.CompDir:]
							case !filepath.IsAbs(fr.File[fr.Dir:]):
								frames[i].File = filepath.Base(fr.File[fr.Dir:])
							}
						}
						if got := asLLVM(frames); got != want[a] {
							t.Errorf("%s %#x\n got\n%s\nwant\n%s", flag, a, got, want[a])
							break
						}
					}
				}
			})
		}
	}
}

// Unlinked object files of several machines give the answers of llvm-symbolizer: every section
// begins at address 0.
func TestObjectFilesAreThoseOfLLVM(t *testing.T) {
	tool(t, "clang-19")
	const text = `static int counter = 3; int table[4] = {1, 2};
static inline __attribute__((always_inline)) int inner(int x) { return x * counter; }
int f(int x) { counter += x; return inner(x) + table[x & 3]; }
int g(int x) { return f(x) + inner(x + 1); }
`
	src := filepath.Join(t.TempDir(), "a.c")
	if err := os.WriteFile(src, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{"x86_64", "i386", "aarch64", "armv7", "riscv64", "riscv32", "powerpc64le", "s390x"} {
		for _, version := range []string{"-gdwarf-4", "-gdwarf-5", "-gz"} {
			t.Run(target+version, func(t *testing.T) {
				dir := t.TempDir()
				f := fixture{path: filepath.Join(dir, ".build-id", "ab", "cd.debug")}
				f.id, _ = buildid.FromBytes([]byte{0xab, 0xcd})
				if err := os.MkdirAll(filepath.Dir(f.path), 0o777); err != nil {
					t.Fatal(err)
				}
				run(t, "clang-19", "--target="+target+"-linux-gnu", "-O1", "-g", version, "-c", src, "-o", f.path)
				var addrs []uint64
				for a := range uint64(200) {
					addrs = append(addrs, a)
				}
				want := f.llvm(t, addrs)
				s := open(t, Options{Reaching: true}, buildid.NewTree(dir))
				lines := 0
				for _, a := range addrs {
					frames, err := s.Ask(context.Background(), nil, f.at(a), Policy{})
					if err != nil {
						t.Fatal(err)
					}
					if got := asLLVM(frames); got != want[a] {
						t.Fatalf("%#x\n got\n%s\nwant\n%s", a, got, want[a])
					}
					if len(frames) > 0 && frames[0].HasLine {
						lines++
					}
				}
				if lines < 20 {
					t.Errorf("%d addresses have a line", lines)
				}
			})
		}
	}
}
