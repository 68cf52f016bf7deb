//go:build linux

package integration

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// packageFiles are what both packages install, but for zsh's completions and Debian's own records.
var packageFiles = []string{
	"/etc/logrotate.d/symfilterd",
	"/etc/symfilter/symfilterd.yaml",
	"/usr/bin/symfilter",
	"/usr/bin/symfilterd",
	"/usr/lib/systemd/system/symfilter-index.service",
	"/usr/lib/systemd/system/symfilter-index.timer",
	"/usr/lib/systemd/system/symfilterd.service",
	"/usr/lib/sysusers.d/symfilterd.conf",
	"/usr/share/bash-completion/completions/symfilter",
	"/usr/share/bash-completion/completions/symfilterd",
	"/usr/share/doc/symfilter/changelog.gz",
	"/usr/share/doc/symfilter/copyright",
	"/usr/share/doc/symfilter/examples/alerts.yaml",
	"/usr/share/doc/symfilter/examples/journal-upload.conf",
	"/usr/share/doc/symfilter/examples/symfilter.yaml",
	"/usr/share/doc/symfilter/examples/symfilterd.socket",
	"/usr/share/doc/symfilter/third-party-licenses.gz",
	"/usr/share/fish/vendor_completions.d/symfilter.fish",
	"/usr/share/fish/vendor_completions.d/symfilterd.fish",
	"/usr/share/man/man1/symfilter.1.gz",
	"/usr/share/man/man8/symfilterd.8.gz",
}

// releasedDeb installs the package with apt in a new Debian, uses it as its user would, and removes
// it.
func releasedDeb(t *testing.T, deb string) {
	t.Run("lintian reports no error", func(t *testing.T) {
		need(t, "lintian")
		out, err := exec.Command("lintian", "--fail-on", "error", "--allow-root", deb).CombinedOutput()
		if err != nil || bytes.Contains(out, []byte("E: ")) {
			t.Errorf("%v\n%s", err, out)
		}
	})
	t.Run("is installed by apt", func(t *testing.T) {
		if os.Getuid() != 0 {
			t.Skip("makes a Debian, which root may")
		}
		root := debian(t)
		copyFile(t, filepath.Join(root, "symfilter.deb"), deb)
		in := func(script string) string {
			t.Helper()
			return run(t, nil, "chroot", root, "/usr/bin/env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C", "sh", "-ec", script)
		}
		in("apt-get -o APT::Sandbox::User=root install -qq -y --no-install-recommends ./symfilter.deb")
		want := slices.Concat(packageFiles, []string{
			"/usr/share/doc/symfilter/changelog.Debian.gz", "/usr/share/lintian/overrides/symfilter",
			"/usr/share/zsh/vendor-completions/_symfilter", "/usr/share/zsh/vendor-completions/_symfilterd",
		})
		slices.Sort(want)
		got := strings.Fields(in(`dpkg -L symfilter | while read -r f; do [ -d "$f" ] || echo "$f"; done`))
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("wanted files (-), installed (+):\n%s", diff)
		}
		for _, c := range []struct{ name, script, want string }{
			{"the command runs", "symfilter --version", "v0.9.0 "},
			{"the daemon runs", "symfilterd --version", "symfilterd v0.9.0 "},
			{"it filters", `printf 'plain\n' | symfilter`, "plain\n"},
			{"the manual is found", "man -w symfilter && zcat $(man -w symfilter)", ".TH SYMFILTER 1 "},
			{"the manual of the daemon is found", "man -w 8 symfilterd && zcat $(man -w 8 symfilterd)", ".TH SYMFILTERD 8 "},
			{"bash loads the completion", "bash -c '. /usr/share/bash-completion/completions/symfilter && complete -p symfilter'", "symfilter\n"},
			{"the user is there", "getent passwd symfilterd", ":/usr/sbin/nologin"},
			{"the configuration is the administrator's", "cat /var/lib/dpkg/info/symfilter.conffiles", "/etc/symfilter/symfilterd.yaml\n"},
			{"the unit runs the installed daemon", "cat /usr/lib/systemd/system/symfilterd.service", "\nExecStart=/usr/bin/symfilterd --config /etc/symfilter/symfilterd.yaml\n"},
			{"the configuration is one", "mkdir -p /var/log/app /var/log/symbolized /var/lib/symfilterd /var/cache/symfilter && symfilterd --config /etc/symfilter/symfilterd.yaml --check && echo good", "good\n"},
			{"no file names another place", "! grep -rl /usr/local /usr/lib/systemd/system/symfilter* /etc/symfilter /etc/logrotate.d/symfilterd && echo none", "none\n"},
		} {
			if got := in(c.script); !strings.Contains(got, c.want) {
				t.Errorf("%s: %s prints no %q:\n%.500s", c.name, c.script, c.want, got)
			}
		}
		for _, unit := range []string{"symfilterd.service", "symfilter-index.service", "symfilter-index.timer"} {
			if data := readFile(t, filepath.Join(root, "usr/lib/systemd/system", unit)); strings.Contains(data, "useradd") {
				t.Errorf("%s still asks for a user", unit)
			}
		}
		in("echo '# mine' >>/etc/symfilter/symfilterd.yaml && apt-get -qq -y remove symfilter")
		if got := in("tail -n 1 /etc/symfilter/symfilterd.yaml; ls /usr/bin | grep symfilter || true"); got != "# mine\n" {
			t.Errorf("after it was removed: %q", got)
		}
		in("apt-get -qq -y purge symfilter")
		if got := in("ls -d /etc/symfilter /var/lib/symfilterd 2>/dev/null || true"); got != "" {
			t.Errorf("after it was purged: %q", got)
		}
	})
}

// debian returns the root folder of a new Debian, which debootstrap made.
func debian(t *testing.T) string {
	t.Helper()
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	made := filepath.Join(home, ".cache", "symfilter-debian", "root.tar")
	need(t, made, "chroot", "tar")
	root := t.TempDir()
	run(t, nil, "tar", "--numeric-owner", "-xpf", made, "-C", root)
	if err := syscall.Mknod(filepath.Join(root, "dev", "null"), syscall.S_IFCHR|0o666, 1<<8|3); err != nil {
		t.Fatal(err)
	}
	return root
}

func releasedRPM(t *testing.T, dir string) {
	need(t, "rpm")
	path := filepath.Join(dir, "symfilter-0.9.0-1.x86_64.rpm")
	query := func(args ...string) []string {
		got := strings.Fields(run(t, nil, "rpm", append([]string{"--nosignature", "-qp"}, append(args, path)...)...))
		slices.Sort(got)
		return got
	}
	want := append(slices.Clone(packageFiles), "/usr/share/zsh/site-functions/_symfilter", "/usr/share/zsh/site-functions/_symfilterd")
	slices.Sort(want)
	if diff := cmp.Diff(want, query("--list")); diff != "" {
		t.Errorf("wanted files (-), listed (+):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"/etc/logrotate.d/symfilterd", "/etc/symfilter/symfilterd.yaml"}, query("--configfiles")); diff != "" {
		t.Error(diff)
	}
	// the same bytes, too
	need(t, "rpm2cpio", "cpio", "dpkg-deb")
	fromRPM, fromDeb := t.TempDir(), t.TempDir()
	cmd := exec.Command("sh", "-c", `rpm2cpio "$0" | cpio --quiet --no-absolute-filenames -idm`, path)
	cmd.Dir = fromRPM
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run(t, nil, "dpkg-deb", "-x", filepath.Join(dir, "symfilter_0.9.0-1_amd64.deb"), fromDeb)
	for _, name := range packageFiles {
		if readFile(t, filepath.Join(fromRPM, name)) != readFile(t, filepath.Join(fromDeb, name)) {
			t.Errorf("%s differs", name)
		}
	}
}
