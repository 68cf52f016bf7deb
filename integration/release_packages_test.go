//go:build linux

package integration

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/asis"
	"github.com/symfilter/symfilter/internal/testenv"
)

// packageFiles returns the files that both packages install, except zsh's completions and Debian's
// own records. The examples are all files of examples/daemon, except compose.yaml, which needs the
// checkout.
func packageFiles(t *testing.T) []string {
	t.Helper()
	all := []string{
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
		"/usr/share/doc/symfilter/third-party-licenses.gz",
		"/usr/share/fish/vendor_completions.d/symfilter.fish",
		"/usr/share/fish/vendor_completions.d/symfilterd.fish",
		"/usr/share/man/man1/symfilter.1.gz",
		"/usr/share/man/man8/symfilterd.8.gz",
	}
	examples, err := filepath.Glob(filepath.Join("..", "examples", "daemon", "*"))
	if err != nil || len(examples) < 10 {
		t.Fatal(err, examples)
	}
	for _, path := range examples {
		if name := filepath.Base(path); name != "compose.yaml" {
			all = append(all, "/usr/share/doc/symfilter/examples/"+name)
		}
	}
	for _, name := range asis.Names() {
		all = append(all, "/usr/libexec/symfilter/"+name)
	}
	slices.Sort(all)
	return all
}

// nextRelease releases the next version of a tree, with changed configuration files. It returns the
// folder of the packages.
func nextRelease(t *testing.T, tree string) string {
	t.Helper()
	clone, dir := filepath.Join(t.TempDir(), "next"), t.TempDir()
	git(t, tree, "clone", "--quiet", tree, clone)
	appendTo(t, filepath.Join(clone, "scripts", "release", "files", "symfilterd.yaml"), "# next\n")
	appendTo(t, filepath.Join(clone, "examples", "daemon", "logrotate"), "# next\n")
	log := filepath.Join(clone, "CHANGELOG.md")
	if err := os.WriteFile(log, []byte("## 0.9.1\n\n"+readFile(t, log)), 0o644); err != nil {
		t.Fatal(err)
	}
	commitAll(t, clone)
	git(t, clone, "tag", "v0.9.1")
	release(t, clone, dir, "-targets", "linux/amd64")
	return dir
}

// A machine is the root folder of a new Debian made by debootstrap.
type machine struct{ root string }

// newMachine unpacks the root file system of a Debian machine. Only root can do so.
func newMachine(t *testing.T) machine {
	t.Helper()
	if os.Getuid() != 0 {
		testenv.Forbidden(t, "make a Debian", "the user is not root")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	made := filepath.Join(home, ".cache", "symfilter-debian", "debian.tar")
	need(t, made, "chroot", "tar")
	root := t.TempDir()
	run(t, nil, "tar", "--numeric-owner", "-xpf", made, "-C", root)
	if err := syscall.Mknod(filepath.Join(root, "dev", "null"), syscall.S_IFCHR|0o666, 1<<8|3); err != nil {
		t.Fatal(err)
	}
	return machine{root}
}

// sh runs a script in the machine and returns its output.
func (m machine) sh(t *testing.T, script string) string {
	t.Helper()
	return run(t, nil, "chroot", m.root, "/usr/bin/env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C", "sh", "-ec", script)
}

// notes matches files in which package managers, man-db and systemd record their actions.
var notes = regexp.MustCompile(`^/(run|root/\.rpmdb|var/lib/(dpkg|apt|rpm)|var/cache/(apt|man|ldconfig)|var/log/(apt|dpkg\.log|alternatives\.log)|etc/(passwd|group|shadow|gshadow|subuid|subgid)-|symfilter.*\.deb)(/|$)`)

// paths returns all files and folders of the machine except notes.
func (m machine) paths(t *testing.T) (all []string) {
	t.Helper()
	err := filepath.WalkDir(m.root, func(path string, _ fs.DirEntry, err error) error {
		if name := strings.TrimPrefix(path, m.root); !notes.MatchString(name) {
			all = append(all, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

// since compares the machine's paths with those listed in before. It returns the added paths, then
// the removed paths, each with a minus in front.
func (m machine) since(t *testing.T, before []string) (changes []string) {
	t.Helper()
	after := m.paths(t)
	for _, name := range after {
		if _, found := slices.BinarySearch(before, name); !found {
			changes = append(changes, name)
		}
	}
	for _, name := range before {
		if _, found := slices.BinarySearch(after, name); !found {
			changes = append(changes, "-"+name)
		}
	}
	return changes
}

// inUse is a script that leaves the machine in the state after the service was enabled and has run.
const inUse = "systemctl --quiet enable symfilterd.service symfilter-index.timer && " +
	"mkdir -p /var/log/symbolized /var/lib/symfilterd/state /var/cache/symfilter && " +
	"touch /var/log/symbolized/app.log /var/lib/symfilterd/state/app /var/cache/symfilter/index"

// enabled is a script that lists the links of enabled units.
const enabled = "ls /etc/systemd/system/*.wants | grep symfilter || true"

// releasedDeb installs the package with apt in a new Debian, uses, upgrades and removes it.
func releasedDeb(t *testing.T, dir, next string) {
	deb := filepath.Join(dir, "symfilter_0.9.0-1_amd64.deb")
	t.Run("lintian reports nothing", func(t *testing.T) {
		need(t, "lintian")
		out, err := exec.Command("lintian", "--fail-on", "error,warning", "--allow-root", deb).CombinedOutput()
		if err != nil || bytes.Contains(out, []byte("E: ")) || bytes.Contains(out, []byte("W: ")) {
			t.Errorf("%v\n%s", err, out)
		}
	})
	m := newMachine(t)
	before := m.paths(t)
	copyFile(t, filepath.Join(m.root, "symfilter.deb"), deb)
	copyFile(t, filepath.Join(m.root, "symfilter-next.deb"), filepath.Join(next, "symfilter_0.9.1-1_amd64.deb"))
	m.sh(t, "apt-get -o APT::Sandbox::User=root install -qq -y --no-install-recommends ./symfilter.deb")
	want := slices.Concat(packageFiles(t), []string{
		"/usr/share/doc/symfilter/changelog.Debian.gz", "/usr/share/lintian/overrides/symfilter",
		"/usr/share/zsh/vendor-completions/_symfilter", "/usr/share/zsh/vendor-completions/_symfilterd",
	})
	slices.Sort(want)
	got := strings.Fields(m.sh(t, `dpkg -L symfilter | while read -r f; do [ -d "$f" ] || echo "$f"; done`))
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("wanted files (-), installed (+):\n%s", diff)
	}
	for _, c := range []struct{ name, script, want string }{ // want is a regular expression
		{"the command runs", "symfilter --version", `^symfilter v0\.9\.0 `},
		{"the daemon runs", "symfilterd --version", `^symfilterd v0\.9\.0 `},
		{"its links answer like other symbolizers", "/usr/libexec/symfilter/llvm-symbolizer --version", `^llvm-symbolizer\nsymfilter v0\.9\.0`},
		{"it filters", `printf 'plain\n' | symfilter`, `^plain\n$`},
		{"the manual is found", "man -w symfilter && zcat $(man -w symfilter)", `(?m)^\.TH SYMFILTER 1 `},
		{"the manual of the daemon is found", "man -w 8 symfilterd && zcat $(man -w 8 symfilterd)", `(?m)^\.TH SYMFILTERD 8 `},
		{"bash loads the completion", "bash -c '. /usr/share/bash-completion/completions/symfilter && complete -p symfilter'", ` symfilter\n$`},
		{"bash loads the completion of the daemon", "bash -c '. /usr/share/bash-completion/completions/symfilterd && complete -p symfilterd'", ` symfilterd\n$`},
		{"the user is there", "getent passwd symfilterd", `:/usr/sbin/nologin\n$`},
		{"the configurations are the administrator's", "cat /var/lib/dpkg/info/symfilter.conffiles", `^/etc/logrotate\.d/symfilterd\n/etc/symfilter/symfilterd\.yaml\n$`},
		{"the unit runs the installed daemon", "cat /usr/lib/systemd/system/symfilterd.service", `\nExecStart=/usr/bin/symfilterd --config /etc/symfilter/symfilterd\.yaml\n`},
		{"the unit can reload", "cat /usr/lib/systemd/system/symfilterd.service", `(?s)\nType=notify\n.*\nExecReload=/bin/sh -c 'kill -HUP \$MAINPID'\n`},
		{"systemd accepts the units", "systemd-analyze verify symfilterd.service symfilter-index.service symfilter-index.timer 2>&1; echo good", `^good\n$`},
		{"nothing is enabled", enabled, `^$`},
		{"the configuration is one", "mkdir -p /var/log/app /var/log/symbolized && symfilterd --config /etc/symfilter/symfilterd.yaml --check 2>&1 && echo good && rmdir /var/log/app /var/log/symbolized", `^(\S+ note: symbols\.debug_file_directories: .*\n)?good\n$`},
		{"no file names another place", "grep -rE '/usr/local|useradd|yaml-language' /usr/lib/systemd/system/symfilter* /etc/symfilter /etc/logrotate.d/symfilterd /usr/share/doc/symfilter/examples || true", `^$`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := m.sh(t, c.script); !regexp.MustCompile(c.want).MatchString(got) {
				t.Errorf("%s prints\n%.500s\nwant %s", c.script, got, c.want)
			}
		})
	}
	t.Run("links of the examples lead to files", func(t *testing.T) {
		index := readFile(t, filepath.Join(m.root, "usr/share/doc/symfilter/examples/README.md"))
		for _, link := range regexp.MustCompile(`\]\(([^):]+)\)`).FindAllStringSubmatch(index, -1) {
			if _, err := os.Stat(filepath.Join(m.root, "usr/share/doc/symfilter/examples", link[1])); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("an upgrade keeps what was edited", func(t *testing.T) {
		m.sh(t, inUse+" && echo '# mine' >>/etc/symfilter/symfilterd.yaml")
		m.sh(t, "apt-get -o APT::Sandbox::User=root -o Dpkg::Options::=--force-confold install -qq -y --no-install-recommends ./symfilter-next.deb")
		got := m.sh(t, "symfilter --version | cut -d ' ' -f 2; tail -n 1 /etc/symfilter/symfilterd.yaml /etc/symfilter/symfilterd.yaml.dpkg-dist /etc/logrotate.d/symfilterd; "+enabled)
		if want := `v0.9.1
==> /etc/symfilter/symfilterd.yaml <==
# mine

==> /etc/symfilter/symfilterd.yaml.dpkg-dist <==
# next

==> /etc/logrotate.d/symfilterd <==
# next
symfilterd.service
symfilter-index.timer
`; got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})
	t.Run("remove leaves what was edited", func(t *testing.T) {
		m.sh(t, "apt-get -qq -y remove symfilter")
		got := m.sh(t, "tail -qn 1 /etc/symfilter/symfilterd.yaml; ls /var/lib/symfilterd; ls /usr/bin | grep symfilter || true; "+enabled)
		if got != "# mine\nstate\n" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("purge leaves the outputs", func(t *testing.T) {
		m.sh(t, "apt-get -qq -y purge symfilter")
		if diff := cmp.Diff([]string{"/var/log/symbolized", "/var/log/symbolized/app.log"}, m.since(t, before)); diff != "" {
			t.Errorf("wanted (-), left (+):\n%s", diff)
		}
		m.sh(t, "getent passwd symfilterd")
	})
}

// releasedRPM compares the package with Debian's, and installs, upgrades and removes it on a
// machine without systemd-sysusers.
func releasedRPM(t *testing.T, dir, next string) {
	need(t, "rpm")
	path := filepath.Join(dir, "symfilter-0.9.0-1.x86_64.rpm")
	query := func(args ...string) []string {
		got := strings.Fields(run(t, nil, "rpm", append([]string{"--nosignature", "-qp"}, append(args, path)...)...))
		slices.Sort(got)
		return got
	}
	t.Run("lists the files of deb", func(t *testing.T) {
		want := append(packageFiles(t), "/usr/share/zsh/site-functions/_symfilter", "/usr/share/zsh/site-functions/_symfilterd",
			"/etc/symfilter", "/usr/share/doc/symfilter", "/usr/share/doc/symfilter/examples", "/usr/libexec/symfilter") // folders removed by rpm
		slices.Sort(want)
		if diff := cmp.Diff(want, query("--list")); diff != "" {
			t.Errorf("wanted files (-), listed (+):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"/etc/logrotate.d/symfilterd", "/etc/symfilter/symfilterd.yaml"}, query("--configfiles")); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("has the bytes of deb", func(t *testing.T) {
		need(t, "rpm2cpio", "cpio", "dpkg-deb")
		fromRPM, fromDeb := t.TempDir(), t.TempDir()
		cmd := exec.Command("sh", "-c", `rpm2cpio "$0" | cpio --quiet --no-absolute-filenames -idm`, path)
		cmd.Dir = fromRPM
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		run(t, nil, "dpkg-deb", "-x", filepath.Join(dir, "symfilter_0.9.0-1_amd64.deb"), fromDeb)
		for _, name := range packageFiles(t) {
			if readFile(t, filepath.Join(fromRPM, name)) != readFile(t, filepath.Join(fromDeb, name)) {
				t.Errorf("%s differs", name)
			}
		}
	})
	t.Run("is installed, upgraded and removed", func(t *testing.T) {
		m := newMachine(t)
		if err := os.Remove(filepath.Join(m.root, "usr/bin/systemd-sysusers")); err != nil {
			t.Fatal(err)
		}
		before := m.paths(t)
		rpm := func(args ...string) {
			t.Helper()
			run(t, nil, "rpm", append([]string{"--root", m.root, "--force-debian", "--nosignature"}, args...)...)
		}
		rpm("--install", path)
		m.sh(t, "getent passwd symfilterd && "+inUse+" && echo '# mine' >>/etc/symfilter/symfilterd.yaml")
		rpm("--upgrade", filepath.Join(next, "symfilter-0.9.1-1.x86_64.rpm"))
		got := m.sh(t, "symfilter --version | cut -d ' ' -f 2; tail -qn 1 /etc/symfilter/symfilterd.yaml /etc/symfilter/symfilterd.yaml.rpmnew /etc/logrotate.d/symfilterd; "+enabled)
		if want := "v0.9.1\n# mine\n# next\n# next\nsymfilterd.service\nsymfilter-index.timer\n"; got != want {
			t.Errorf("after the upgrade %q, want %q", got, want)
		}
		rpm("--erase", "symfilter")
		want := []string{
			"/etc/symfilter", "/etc/symfilter/symfilterd.yaml.rpmnew", "/etc/symfilter/symfilterd.yaml.rpmsave",
			"/usr/share/fish", "/usr/share/fish/vendor_completions.d", "/usr/share/zsh/site-functions", // folders of Fedora's package filesystem
			"/var/cache/symfilter", "/var/cache/symfilter/index", "/var/lib/symfilterd", "/var/lib/symfilterd/state", "/var/lib/symfilterd/state/app",
			"/var/log/symbolized", "/var/log/symbolized/app.log",
		}
		if diff := cmp.Diff(want, m.since(t, before)); diff != "" {
			t.Errorf("wanted (-), left (+):\n%s", diff)
		}
	})
}
