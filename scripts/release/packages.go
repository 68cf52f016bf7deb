package main

import (
	"bytes"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	"github.com/goreleaser/nfpm/v2/rpm"
	"github.com/klauspost/compress/gzip"
)

//go:embed files
var texts embed.FS

const (
	maintainer  = "The symfilter maintainers <symfilter@users.noreply.github.com>"
	description = `symbolizer of logs: addresses become function, file and line
symfilter reads logs with raw addresses (backtraces of sanitizers, glibc,
Android, kernels and firmware, LLVM symbolizer markup, reports of Valgrind) and
prints them with functions, files and lines. symfilterd does so as a service.`
)

// installed is a file of a package, with its destination.
type installed struct {
	to   string
	mode os.FileMode
	data []byte
	kind string // kind of nfpm; "" for an ordinary file
	link string // target of a symbolic link, or ""
}

// linksFolder has a symbolic link to symfilter for each symbolizer that symfilter can replace.
// Called by such a name, symfilter answers like that symbolizer. The folder is not in PATH, so the
// links hide no other program. Debian and the distributions of RPM have /usr/libexec: FHS 3.0, 4.7.
const linksFolder = "/usr/libexec/symfilter"

// packages writes a package for Debian and one for RPM for each target of Linux.
func (r *material) packages() error {
	arch := map[string]string{"arm": "arm7"} // names of nfpm
	for i := range r.products {
		p := r.products[i]
		if p.os != "linux" || p.command != "symfilter" {
			continue
		}
		info := nfpm.Info{
			Name: "symfilter", Arch: p.arch, Platform: "linux", Version: r.version, Release: "1",
			Section: "devel", Priority: "optional", Maintainer: maintainer, Vendor: "symfilter",
			Homepage: "https://github.com/symfilter/symfilter", License: "Apache-2.0", Description: description,
			MTime: r.date, DisableGlobbing: true,
		}
		if name := arch[p.arch]; name != "" {
			info.Arch = name
		}
		if err := r.pack(info, rpm.DefaultRPM, "rpm", &p); err != nil {
			return fmt.Errorf("rpm for %s: %w", p.arch, err)
		}
		info.License = "" // Debian's control file has no field for it
		if err := r.pack(info, deb.Default, "deb", &p); err != nil {
			return fmt.Errorf("deb for %s: %w", p.arch, err)
		}
	}
	return nil
}

// pack writes a package with the commands for p's target. The parameter of is "deb" or "rpm".
func (r *material) pack(info nfpm.Info, packager nfpm.Packager, of string, p *product) error {
	all, err := r.installed(of, p)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(r.work, of)
	if err != nil {
		return err
	}
	keep := func(name string, data []byte) (string, error) {
		path := filepath.Join(dir, name)
		return path, os.WriteFile(path, data, 0o644)
	}
	for i, f := range all {
		from, err := f.link, error(nil)
		if f.kind != files.TypeSymlink {
			from, err = keep(fmt.Sprint(i), f.data)
		}
		if err != nil {
			return err
		}
		info.Contents = append(info.Contents, &files.Content{
			Source: from, Destination: f.to, Type: f.kind,
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: f.mode, MTime: r.date},
		})
	}
	for name, to := range map[string]*string{"postinst": &info.Scripts.PostInstall, "prerm": &info.Scripts.PreRemove, "postrm": &info.Scripts.PostRemove} {
		data, err := texts.ReadFile("files/" + name)
		if err == nil {
			*to, err = keep(name, data)
		}
		if err != nil {
			return err
		}
	}
	info.RPM.BuildHost = "localhost"
	info.RPM.Summary, _, _ = strings.Cut(description, "\n")
	nfpm.WithDefaults(&info)
	var out bytes.Buffer
	if err := packager.Package(&info, &out); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.output, packager.ConventionalFileName(&info)), out.Bytes(), 0o644)
}

// installed returns the files of a package. Packages for Debian and RPM have zsh's completions in
// different folders. Only Debian's has Debian's changelog and lintian's overrides, and only the RPM
// lists its folders.
func (r *material) installed(of string, p *product) (all []installed, err error) {
	fail := func(e error) {
		if err == nil {
			err = e
		}
	}
	add := func(to string, mode os.FileMode, kind string, data []byte, e error) {
		fail(e)
		if strings.HasSuffix(to, ".gz") {
			data, e = zipped(data, gzip.BestCompression)
			fail(e)
		}
		all = append(all, installed{to: to, mode: mode, data: data, kind: kind})
	}
	tree := func(name string) ([]byte, error) {
		return os.ReadFile(filepath.Join(r.checkout, filepath.FromSlash(name)))
	}
	addExample := func(to, kind, name string) {
		data, e := tree("examples/daemon/" + name)
		add(to, 0o644, kind, packaged(name, data), e)
	}
	addText := func(to, kind, name string) {
		data, e := texts.ReadFile("files/" + name)
		add(to, 0o644, kind, data, e)
	}
	zsh := map[string]string{"deb": "/usr/share/zsh/vendor-completions/", "rpm": "/usr/share/zsh/site-functions/"}[of]
	const doc = "/usr/share/doc/symfilter/"

	if of == "rpm" { // dpkg removes all empty folders, rpm only folders that the package owns
		for _, dir := range []string{"/etc/symfilter", doc, doc + "examples", linksFolder} {
			add(strings.TrimSuffix(dir, "/"), 0o755|os.ModeDir, files.TypeDir, nil, nil)
		}
	}
	for _, command := range []string{"symfilter", "symfilterd"} {
		data, e := os.ReadFile(filepath.Join(filepath.Dir(p.path), command))
		add("/usr/bin/"+command, 0o755, "", data, e)
	}
	for _, name := range r.symbolizers {
		all = append(all, installed{to: linksFolder + "/" + name, mode: 0o777, kind: files.TypeSymlink, link: "../../bin/symfilter"})
	}
	for _, page := range r.pages {
		dir, name, _ := strings.Cut(page.name, "/")
		switch {
		case dir == "man":
			add("/usr/share/man/man"+name[len(name)-1:]+"/"+name+".gz", 0o644, "", page.data, nil)
		case strings.HasSuffix(name, ".bash"):
			add("/usr/share/bash-completion/completions/"+strings.TrimSuffix(name, ".bash"), 0o644, "", page.data, nil)
		case strings.HasSuffix(name, ".fish"):
			add("/usr/share/fish/vendor_completions.d/"+name, 0o644, "", page.data, nil)
		default:
			add(zsh+name, 0o644, "", page.data, nil)
		}
	}
	addText("/etc/symfilter/symfilterd.yaml", files.TypeConfigNoReplace, "symfilterd.yaml")
	addExample("/etc/logrotate.d/symfilterd", files.TypeConfigNoReplace, "logrotate")
	addText("/usr/lib/sysusers.d/symfilterd.conf", "", "sysusers.conf")
	for _, unit := range []string{"symfilterd.service", "symfilter-index.service", "symfilter-index.timer"} {
		addExample("/usr/lib/systemd/system/"+unit, "", unit)
	}
	examples, e := os.ReadDir(filepath.Join(r.checkout, "examples", "daemon")) // sorted
	fail(e)
	for _, example := range examples {
		if example.Name() != "compose.yaml" { // builds the image from the checkout
			addExample(doc+"examples/"+example.Name(), "", example.Name())
		}
	}
	addText(doc+"copyright", "", "copyright")
	add(doc+"third-party-licenses.gz", 0o644, "", r.licenses[p.target()], nil)
	log, e := tree("CHANGELOG.md")
	add(doc+"changelog.gz", 0o644, "", log, e)
	if of == "deb" {
		add(doc+"changelog.Debian.gz", 0o644, "", r.debianLog(), nil)
		addText("/usr/share/lintian/overrides/symfilter", "", "lintian")
	}
	return all, err
}

// packaged adapts a file of examples/daemon to a package: the commands are in /usr/bin, the
// configuration is symfilterd.yaml, the package creates the user, and compose.yaml is absent. The
// unit uses Type=notify and ExecReload, since Type=notify-reload needs systemd 253, and Debian 12
// has 252. Manifests of Kubernetes are unchanged, since their paths are in containers.
func packaged(name string, data []byte) []byte {
	if strings.HasPrefix(name, "kubernetes") {
		return data
	}
	return []byte(strings.NewReplacer(
		"/usr/local/bin/", "/usr/bin/",
		"/etc/symfilter/symfilter.yaml", "/etc/symfilter/symfilterd.yaml",
		"#   useradd --system --no-create-home --shell /usr/sbin/nologin symfilterd\n", "",
		"#   cp symfilterd.service /etc/systemd/system/ && systemctl daemon-reload && systemctl enable --now symfilterd\n",
		"#   systemctl enable --now symfilterd\n",
		" Before systemd 253, Type=notify and\n# ExecReload=/bin/kill -HUP $MAINPID take the place of Type=notify-reload.\n", "\n",
		"Type=notify-reload\n", "Type=notify\n",
		"\nWatchdogSec=", "\nExecReload=/bin/sh -c 'kill -HUP $MAINPID'\nWatchdogSec=",
		"# yaml-language-server: $schema=../../internal/daemon/schema.json\n", "",
		"[compose.yaml](compose.yaml), ", "", "containers: beside a program, on each node", "containers: on each node",
		"`compose.yaml` and the Kubernetes manifests", "the Kubernetes manifests",
	).Replace(string(data)))
}

// debianLog returns Debian's changelog of the package. Its one entry refers to changelog.gz.
func (r *material) debianLog() []byte {
	version := strings.Replace(r.plain(), "-", "~", 1) + "-1"
	return fmt.Appendf(nil, "symfilter (%s) unstable; urgency=medium\n\n  * The changes are in changelog.gz.\n\n -- %s  %s\n",
		version, maintainer, r.date.UTC().Format(time.RFC1123Z))
}
