//go:build linux

package integration

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/elf"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// releaseTargets are the platforms of a release; all but the last have both commands.
var releaseTargets = []string{"linux_amd64", "linux_arm64", "linux_arm", "linux_riscv64", "darwin_amd64", "darwin_arm64", "windows_amd64"}

// release writes the files of a release of a tree to a folder.
func release(t *testing.T, tree, dir string, flags ...string) {
	t.Helper()
	run(t, nil, "go", slices.Concat([]string{"-C", filepath.Join(tree, "scripts", "release"), "run", "."}, flags, []string{dir})...)
}

// tagged returns a repository with the current tree at the tag v0.9.0 and a release's heading in
// CHANGELOG.md.
func tagged(t *testing.T) string {
	t.Helper()
	tree := snapshot(t)
	log := filepath.Join(tree, "CHANGELOG.md")
	text := readFile(t, log)
	heading := regexp.MustCompile(`(?m)^## .*$`).FindString(text)
	if err := os.WriteFile(log, []byte(strings.Replace(text, heading, "## 0.9.0 (2026-01-02)", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	commitAll(t, tree)
	git(t, tree, "tag", "v0.9.0")
	return tree
}

// commitAll commits all changes in a repository.
func commitAll(t *testing.T, tree string) {
	t.Helper()
	git(t, tree, "-c", "user.name=test", "-c", "user.email=test@example.invalid", "-c", "commit.gpgsign=false", "commit", "--quiet", "--all", "--message", "changed")
}

// A release from another clone must have the same bytes. The released programs must run, and record
// the tagged commit and their modules.
func TestRelease(t *testing.T) {
	if strings.TrimSpace(run(t, nil, "go", "env", "GOARCH")) != "amd64" {
		t.Skip("runs the packages for amd64")
	}
	if !long() {
		t.Skip("compiles and packs for minutes; make test-long makes the release")
	}
	need(t, "git")
	tree, dir := tagged(t), t.TempDir()
	// README.md's command as a user runs it, not within another make
	cmd := exec.Command("sh", "-c", strings.Replace(installCommand(t, "make release"), "OUTPUT=dist", "OUTPUT="+dir, 1))
	cmd.Dir, cmd.Env = tree, append(os.Environ(), "MAKEFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	if got := git(t, tree, "status", "--porcelain"); got != "" {
		t.Errorf("the release has changed its checkout:\n%s", got)
	}

	t.Run("has these files", func(t *testing.T) {
		var want []string
		for _, target := range releaseTargets {
			want = append(want, "symfilter_0.9.0_"+target+".tar.gz", "symfilter_0.9.0_"+target+".cdx.json")
			if target != "windows_amd64" {
				want = append(want, "symfilterd_0.9.0_"+target+".cdx.json")
			}
		}
		for _, arch := range []string{"amd64", "arm64", "armhf", "riscv64"} {
			want = append(want, "symfilter_0.9.0-1_"+arch+".deb")
		}
		for _, arch := range []string{"x86_64", "aarch64", "armv7hl", "riscv64"} {
			want = append(want, "symfilter-0.9.0-1."+arch+".rpm")
		}
		want = append(want, "symfilter_0.9.0_image.tar", "symfilterd_0.9.0_image.tar", "SHA256SUMS")
		slices.Sort(want)
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(digests(t, dir)))); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("is the same bytes from another clone", func(t *testing.T) {
		clone, again := filepath.Join(t.TempDir(), "another place"), t.TempDir()
		git(t, tree, "clone", "--quiet", tree, clone)
		t.Setenv("TZ", "Asia/Tokyo")
		t.Setenv("LC_ALL", "C")
		t.Setenv("SOURCE_DATE_EPOCH", "1")
		release(t, clone, again)
		if diff := cmp.Diff(digests(t, dir), digests(t, again)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("is the same bytes from an empty cache", func(t *testing.T) {
		// only linux/amd64: all platforms are compiled alike, and all seven would take a quarter of
		// an hour. On amd64, the manual pages need this program anyway.
		again := t.TempDir()
		t.Setenv("GOCACHE", t.TempDir())
		release(t, tree, again, "-targets", "linux/amd64")
		first, second := digests(t, dir), digests(t, again)
		for name := range second {
			if strings.Contains(name, "image") || name == "SHA256SUMS" { // these contain all platforms
				delete(second, name)
			}
		}
		maps.DeleteFunc(first, func(name, _ string) bool { return second[name] == "" })
		if diff := cmp.Diff(first, second); diff != "" || len(second) != 5 {
			t.Errorf("%d files: %s", len(second), diff)
		}
	})
	t.Run("checksums fit", func(t *testing.T) {
		need(t, "sha256sum")
		cmd := exec.Command("sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS")
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		if sums, all := strings.Count(readFile(t, filepath.Join(dir, "SHA256SUMS")), "\n"), len(digests(t, dir)); sums != all-1 {
			t.Errorf("%d sums of %d files", sums, all)
		}
	})
	for i, target := range releaseTargets {
		to := t.TempDir()
		unpack(t, []byte(readFile(t, filepath.Join(dir, "symfilter_0.9.0_"+target+".tar.gz"))), to)
		for _, command := range []string{"symfilter", "symfilterd"}[:2-i/6] {
			program := filepath.Join(to, "symfilter_0.9.0_"+target, command)
			if target == "windows_amd64" {
				program += ".exe"
			}
			t.Run(command+" for "+target, func(t *testing.T) {
				info := run(t, nil, "go", "version", "-m", program)
				t.Run("is of the tag", func(t *testing.T) { releasedProgram(t, tree, target, program, info) })
				t.Run("has a bill of what is linked", func(t *testing.T) {
					releasedMaterials(t, filepath.Join(dir, command+"_0.9.0_"+target+".cdx.json"), command, info)
				})
				if strings.HasPrefix(target, "linux_") {
					t.Run("runs", func(t *testing.T) { runReleased(t, target, program, command+" v0.9.0 ") })
				}
			})
		}
	}
	next := nextRelease(t, tree)
	t.Run("deb", func(t *testing.T) { releasedDeb(t, dir, next) })
	t.Run("rpm", func(t *testing.T) { releasedRPM(t, dir, next) })
	t.Run("images run", func(t *testing.T) { releasedImages(t, dir) })
}

func digests(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for _, e := range entries {
		all[e.Name()] = fmt.Sprintf("%x", sha256.Sum256([]byte(readFile(t, filepath.Join(dir, e.Name())))))
	}
	return all
}

// unpack unpacks a tar archive, compressed or not, into a folder.
func unpack(t *testing.T, archive []byte, to string) {
	t.Helper()
	var from io.Reader = bytes.NewReader(archive)
	if bytes.HasPrefix(archive, []byte{0x1f, 0x8b}) {
		unzipped, err := gzip.NewReader(from)
		if err != nil {
			t.Fatal(err)
		}
		from = unzipped
	}
	for r := tar.NewReader(from); ; {
		h, err := r.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(to, filepath.FromSlash(h.Name))
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o755)
		} else if h.Typeflag == tar.TypeSymlink {
			err = os.Symlink(h.Linkname, path)
		} else if data, failed := io.ReadAll(r); failed != nil {
			err = failed
		} else {
			err = os.WriteFile(path, data, h.FileInfo().Mode().Perm())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// releasedProgram checks how a program was built, and that it needs no other file.
func releasedProgram(t *testing.T, tree, target, program, info string) {
	system, arch, _ := strings.Cut(target, "_")
	for _, want := range []string{"\tmod\tgithub.com/symfilter/symfilter\tv0.9.0\t", "\tbuild\tGOOS=" + system + "\n", "\tbuild\tGOARCH=" + arch + "\n", "\tbuild\tCGO_ENABLED=0\n", "\tbuild\t-trimpath=true\n", "\tbuild\tvcs.modified=false\n"} {
		if !strings.Contains(info, want) {
			t.Errorf("no %q in\n%s", want, info)
		}
	}
	data := readFile(t, program)
	for _, dir := range []string{tree, filepath.Join(goEnv(t, "GOROOT"), "src", "runtime"), goEnv(t, "GOMODCACHE"), goEnv(t, "GOCACHE")} {
		if strings.Contains(data, dir) {
			t.Errorf("it holds %s", dir)
		}
	}
	licenses := readFile(t, filepath.Join(filepath.Dir(program), "third-party-licenses"))
	for m := range linkedModules(info) {
		if !strings.Contains(licenses, "==== "+m+"\n") {
			t.Errorf("no license of %s", m)
		}
	}
	if system != "linux" {
		return
	}
	f, err := elf.NewFile(strings.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("it has a segment %s", p.Type)
		}
	}
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	return strings.TrimSpace(run(t, nil, "go", "env", name))
}

// runReleased runs a program for Linux, with an emulator if it is for another architecture.
func runReleased(t *testing.T, target, program, want string) {
	args := []string{program, "--version"}
	if emulator := map[string]string{"linux_arm64": "qemu-aarch64", "linux_arm": "qemu-arm", "linux_riscv64": "qemu-riscv64"}[target]; emulator != "" {
		args = slices.Insert(args, 0, emulator)
	}
	if got := run(t, nil, args[0], args[1:]...); !strings.HasPrefix(got, want) {
		t.Errorf("--version prints %q", got)
	}
}

// linkedModules maps the modules in the output of go version -m, as "PATH VERSION", to their sums.
func linkedModules(info string) map[string]string {
	all := make(map[string]string)
	for _, m := range regexp.MustCompile(`(?m)^\tdep\t(\S+)\t(\S+)\t(\S+)$`).FindAllStringSubmatch(info, -1) {
		all[m[1]+" "+m[2]] = m[3]
	}
	return all
}

// releasedMaterials compares a bill of materials with the output of go version -m for the program.
func releasedMaterials(t *testing.T, path, command, info string) {
	want := linkedModules(info)
	if len(want) < 5 {
		t.Fatalf("go version -m lists only %d modules", len(want))
	}
	first, _, _ := strings.Cut(info, "\n")
	_, version, _ := strings.Cut(first, ": go")
	want["std "+version] = ""
	var bom struct {
		BOMFormat, SpecVersion string
		Metadata               struct {
			Component struct{ Name, Version string }
		}
		Components []struct {
			Name, Version, PURL string
			Properties          []struct{ Name, Value string }
		}
	}
	if err := json.Unmarshal([]byte(readFile(t, path)), &bom); err != nil {
		t.Fatal(err)
	}
	got := make(map[string]string)
	for _, c := range bom.Components {
		sum := ""
		for _, p := range c.Properties {
			sum = p.Value
		}
		got[c.Name+" "+c.Version] = sum
		if c.PURL != "pkg:golang/"+c.Name+"@"+c.Version {
			t.Errorf("%s has the URL %s", c.Name, c.PURL)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("go version -m (-), bill of materials (+):\n%s", diff)
	}
	head := []string{bom.BOMFormat, bom.SpecVersion, bom.Metadata.Component.Name, bom.Metadata.Component.Version}
	if diff := cmp.Diff([]string{"CycloneDX", "1.5", "github.com/symfilter/symfilter/cmd/" + command, "v0.9.0"}, head); diff != "" {
		t.Error(diff)
	}
}
