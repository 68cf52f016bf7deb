//go:build linux

package integration

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/asis"
	"github.com/symfilter/symfilter/internal/testenv"
)

// releasedImages runs the root file system of each image for this machine, as the image's user.
func releasedImages(t *testing.T, dir string) {
	if os.Getuid() != 0 {
		testenv.Forbidden(t, "change the root folder", "the user is not root")
	}
	type descriptor struct {
		MediaType, Digest string
		Platform          struct{ OS, Architecture, Variant string }
		Annotations       map[string]string
	}
	for _, command := range []string{"symfilter", "symfilterd"} {
		t.Run(command+" is read by skopeo", func(t *testing.T) {
			need(t, "skopeo")
			run(t, nil, "skopeo", "copy", "--quiet", "--all", "oci-archive:"+filepath.Join(dir, command+"_0.9.0_image.tar")+":0.9.0", "dir:"+t.TempDir())
		})
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
		if command == "symfilter" {
			for _, name := range asis.Names() {
				cmd := exec.Command("/usr/libexec/symfilter/"+name, "--version")
				cmd.Dir, cmd.Env, cmd.SysProcAttr = "/", []string{}, &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
				if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "symfilter v0.9.0") {
					t.Errorf("%s --version in the image: %v\n%s", name, err, out)
				}
			}
		}
		t.Run(command+" under runc", func(t *testing.T) { inContainer(t, root, configuration.Config.Entrypoint[0]) })
	}
}

// inContainer runs the root file system of an image with runc: read-only, without capabilities and
// network, as the image's user. symfilter resolves a log.
func inContainer(t *testing.T, root, entrypoint string) {
	need(t, "runc")
	fixtures, err := filepath.Abs(filepath.Join("..", "testdata"))
	if err != nil {
		t.Fatal(err)
	}
	bundle := t.TempDir()
	run(t, nil, "runc", "spec", "--bundle", bundle)
	path := filepath.Join(bundle, "config.json")
	var spec map[string]any
	if err := json.Unmarshal([]byte(readFile(t, path)), &spec); err != nil {
		t.Fatal(err)
	}
	args, stdin, want := []string{entrypoint, "--version"}, "", "symfilterd v0.9.0 "
	if entrypoint == "/symfilter" {
		args = []string{entrypoint, "--debug-file-directory", "/debug", "--no-default-debug-directories"}
		stdin, want = readFile(t, filepath.Join(fixtures, "crash.log")), readFile(t, filepath.Join(fixtures, "crash.golden"))
		if err := os.Mkdir(filepath.Join(root, "debug"), 0o755); err != nil { // otherwise runc would make it as a mount point
			t.Fatal(err)
		}
	}
	spec["root"] = map[string]any{"path": root, "readonly": true}
	process := spec["process"].(map[string]any)
	process["args"], process["terminal"], process["env"], process["capabilities"] = args, false, []string{}, map[string]any{}
	process["user"] = map[string]int{"uid": nobody, "gid": nobody}
	spec["mounts"] = append(spec["mounts"].([]any), map[string]any{"destination": "/debug", "type": "bind", "source": filepath.Join(fixtures, "debug"), "options": []string{"rbind", "ro"}})
	changed, err := json.Marshal(spec)
	if err == nil {
		err = os.WriteFile(path, changed, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("runc", "--root", filepath.Join(bundle, "state"), "run", "--bundle", bundle, fmt.Sprintf("symfilter-test-%d", os.Getpid()))
	cmd.Stdin = strings.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if strings.Contains(stderr.String(), "operation not permitted") {
		testenv.Forbidden(t, "start a container", strings.TrimSpace(stderr.String()))
	}
	if err != nil || !strings.HasPrefix(string(out), want) {
		t.Errorf("%v\n%s\nwant %q\ngot %q", err, stderr.Bytes(), want, out)
	}
}
