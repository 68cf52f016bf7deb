//go:build linux

package integration

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
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
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// released returns a folder with the files of scripts/release for the present tree with the tag
// v0.9.0, and that tree. In the long tests it makes them for all targets.
func released(t *testing.T) (dir, tree string) {
	t.Helper()
	if !long() {
		t.Skip("compiles and packs for minutes; make test-long makes the release")
	}
	need(t, "git")
	tree = tagged(t)
	dir = t.TempDir()
	run(t, nil, "go", "-C", filepath.Join(tree, "scripts", "release"), "run", ".", dir)
	return dir, tree
}

// tagged returns a repository with the present tree at the tag v0.9.0.
func tagged(t *testing.T) string {
	t.Helper()
	tree := snapshot(t)
	git(t, tree, "tag", "v0.9.0")
	return tree
}

// A release is the same bytes elsewhere; what a user downloads runs, and is what it says.
func TestRelease(t *testing.T) {
	if strings.TrimSpace(run(t, nil, "go", "env", "GOARCH")) != "amd64" {
		t.Skip("runs the packages for amd64")
	}
	dir, tree := released(t)

	t.Run("has these files", func(t *testing.T) {
		var want []string
		for _, target := range []string{"linux_amd64", "linux_arm64", "linux_arm", "linux_riscv64", "darwin_amd64", "darwin_arm64", "windows_amd64"} {
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
		run(t, nil, "go", "-C", filepath.Join(clone, "scripts", "release"), "run", ".", again)
		if diff := cmp.Diff(digests(t, dir), digests(t, again)); diff != "" {
			t.Error(diff)
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
	t.Run("programs are static, of the tag", func(t *testing.T) { releasedPrograms(t, dir) })
	t.Run("bills of materials list what is linked", func(t *testing.T) { releasedMaterials(t, dir) })
	t.Run("deb", func(t *testing.T) { releasedDeb(t, filepath.Join(dir, "symfilter_0.9.0-1_amd64.deb")) })
	t.Run("rpm has the files of deb", func(t *testing.T) { releasedRPM(t, dir) })
	t.Run("images run", func(t *testing.T) { releasedImages(t, dir) })
}

// digests returns the SHA-256 of each file in a folder.
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

// unpack unpacks an archive of tar, compressed or not, into a folder.
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

func releasedPrograms(t *testing.T, dir string) {
	for _, target := range []string{"linux_amd64", "linux_arm", "darwin_arm64", "windows_amd64"} {
		to, top := t.TempDir(), "symfilter_0.9.0_"+target
		unpack(t, []byte(readFile(t, filepath.Join(dir, top+".tar.gz"))), to)
		name := "symfilter"
		if target == "windows_amd64" {
			name += ".exe"
		}
		program := filepath.Join(to, top, name)
		info := run(t, nil, "go", "version", "-m", program)
		system, arch, _ := strings.Cut(target, "_")
		for _, want := range []string{"\tmod\tgithub.com/symfilter/symfilter\tv0.9.0\t", "\tbuild\tGOOS=" + system + "\n", "\tbuild\tGOARCH=" + arch + "\n", "\tbuild\tCGO_ENABLED=0\n", "\tbuild\t-trimpath=true\n", "\tbuild\tvcs.modified=false\n"} {
			if !strings.Contains(info, want) {
				t.Errorf("%s: no %q in\n%s", target, want, info)
			}
		}
		if target == "linux_amd64" {
			if got := run(t, nil, program, "--version"); !strings.Contains(got, "v0.9.0") {
				t.Errorf("--version prints %q", got)
			}
			licenses := readFile(t, filepath.Join(to, top, "third-party-licenses"))
			for m := range linkedModules(info) {
				if !strings.Contains(licenses, "==== "+m+"\n") {
					t.Errorf("no license of %s", m)
				}
			}
		}
	}
}

// linkedModules returns the modules that go version -m lists, as "PATH VERSION", with their sums.
func linkedModules(info string) map[string]string {
	all := make(map[string]string)
	for _, m := range regexp.MustCompile(`(?m)^\tdep\t(\S+)\t(\S+)\t(\S+)$`).FindAllStringSubmatch(info, -1) {
		all[m[1]+" "+m[2]] = m[3]
	}
	return all
}

func releasedMaterials(t *testing.T, dir string) {
	to, top := t.TempDir(), "symfilter_0.9.0_linux_amd64"
	unpack(t, []byte(readFile(t, filepath.Join(dir, top+".tar.gz"))), to)
	for _, command := range []string{"symfilter", "symfilterd"} {
		info := run(t, nil, "go", "version", "-m", filepath.Join(to, top, command))
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
		if err := json.Unmarshal([]byte(readFile(t, filepath.Join(dir, command+"_0.9.0_linux_amd64.cdx.json"))), &bom); err != nil {
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
			t.Errorf("%s: go version -m (-), bill of materials (+):\n%s", command, diff)
		}
		head := []string{bom.BOMFormat, bom.SpecVersion, bom.Metadata.Component.Name, bom.Metadata.Component.Version}
		if diff := cmp.Diff([]string{"CycloneDX", "1.5", "github.com/symfilter/symfilter/cmd/" + command, "v0.9.0"}, head); diff != "" {
			t.Error(diff)
		}
	}
}

// releasedImages runs the root file system of each image for this machine as the user of the image.
func releasedImages(t *testing.T, dir string) {
	if os.Getuid() != 0 {
		t.Skip("changes the root folder, which root may")
	}
	type descriptor struct {
		MediaType, Digest string
		Platform          struct{ OS, Architecture, Variant string }
		Annotations       map[string]string
	}
	for _, command := range []string{"symfilter", "symfilterd"} {
		layout := t.TempDir()
		unpack(t, []byte(readFile(t, filepath.Join(dir, command+"_0.9.0_image.tar"))), layout)
		blob := func(digest string) []byte {
			algorithm, sum, _ := strings.Cut(digest, ":")
			data := []byte(readFile(t, filepath.Join(layout, "blobs", algorithm, sum)))
			if got := fmt.Sprintf("%x", sha256.Sum256(data)); got != sum {
				t.Fatalf("the blob %s has the digest %s", digest, got)
			}
			return data
		}
		read := func(data []byte, to any) {
			if err := json.Unmarshal(data, to); err != nil {
				t.Fatal(err)
			}
		}
		if got := readFile(t, filepath.Join(layout, "oci-layout")); got != `{"imageLayoutVersion":"1.0.0"}` {
			t.Errorf("oci-layout: %s", got)
		}
		var top, index struct{ Manifests []descriptor }
		read([]byte(readFile(t, filepath.Join(layout, "index.json"))), &top)
		if len(top.Manifests) != 1 || top.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "0.9.0" {
			t.Fatalf("index.json: %+v", top)
		}
		read(blob(top.Manifests[0].Digest), &index)
		var platforms []string
		for _, d := range index.Manifests {
			platforms = append(platforms, d.Platform.OS+"/"+d.Platform.Architecture+d.Platform.Variant)
		}
		if diff := cmp.Diff([]string{"linux/amd64", "linux/arm64", "linux/armv7", "linux/riscv64"}, platforms); diff != "" {
			t.Fatal(diff)
		}
		var manifest struct {
			Config descriptor
			Layers []descriptor
		}
		read(blob(index.Manifests[0].Digest), &manifest)
		var configuration struct {
			Config struct {
				User       string
				Entrypoint []string
			}
		}
		read(blob(manifest.Config.Digest), &configuration)
		if got, want := fmt.Sprint(configuration.Config), fmt.Sprintf("{%d:%[1]d [/%s]}", nobody, command); got != want {
			t.Errorf("configuration %s, want %s", got, want)
		}
		root := t.TempDir()
		for _, layer := range manifest.Layers {
			unpack(t, blob(layer.Digest), root)
		}
		cmd := exec.Command(configuration.Config.Entrypoint[0], "--version")
		cmd.Dir, cmd.Env = "/", []string{}
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		if out, err := cmd.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), command+" v0.9.0 ") {
			t.Errorf("%s --version in the image: %v\n%s", command, err, out)
		}
	}
}
