package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// allTargets are the platforms of a release. The daemon is not built for Windows: its signals,
// sockets and checkpoints need Unix.
var allTargets = []string{"linux/amd64", "linux/arm64", "linux/arm", "linux/riscv64", "darwin/amd64", "darwin/arm64", "windows/amd64"}

// product is a command built for a target.
type product struct {
	command, os, arch string
	path              string // path of the file
	info              *buildinfo.BuildInfo
}

// name returns the name under which the file is installed.
func (p *product) name() string {
	if p.os == "windows" {
		return p.command + ".exe"
	}
	return p.command
}

// target returns the platform of the product, in the form of allTargets.
func (p *product) target() string { return p.os + "/" + p.arch }

// material holds the folders, programs and texts from which the files of a release are made.
type material struct {
	checkout, work, output string
	version                string    // with a v
	date                   time.Time // date of the commit
	products               []product
	pages                  []file            // manual pages, completions
	licenses               map[string][]byte // licenses of the linked modules, by target
	symbolizers            []string          // names of the programs that symfilter replaces
}

// plain returns the version without the v, for file names.
func (r *material) plain() string { return strings.TrimPrefix(r.version, "v") }

// buildAll builds the commands for the targets.
func buildAll(checkout, work string, targets []string) (all []product, err error) {
	for _, target := range targets {
		system, arch, _ := strings.Cut(target, "/")
		commands := []string{"symfilter", "symfilterd"}
		if system == "windows" {
			commands = commands[:1]
		}
		for _, command := range commands {
			p, err := build(checkout, filepath.Join(work, system+"_"+arch), command, system, arch)
			if err != nil {
				return nil, err
			}
			all = append(all, p)
		}
	}
	return all, nil
}

// build builds a command as make build does.
func build(checkout, dir, command, system, arch string) (product, error) {
	p := product{command: command, os: system, arch: arch}
	p.path = filepath.Join(dir, p.name())
	script, err := filepath.Abs(filepath.Join(checkout, "scripts", "build-static"))
	if err != nil {
		return p, err
	}
	cmd := exec.Command(script, p.path, command)
	// Set the lowest architecture versions that Go builds for by default. The settings of this
	// machine must not change the programs.
	cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+arch, "GOAMD64=v1", "GOARM64=v8.0", "GOARM=7", "GORISCV64=rva20u64", "GOWORK=off", "GOEXPERIMENT=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return p, fmt.Errorf("build %s for %s/%s: %w\n%s", command, system, arch, err, out)
	}
	p.info, err = buildinfo.ReadFile(p.path)
	return p, err
}

// describe returns the material of a release for the given products. The manual pages and
// completions are printed by commands built for this machine.
func describe(checkout, work string, all []product) (*material, error) {
	r := &material{checkout: checkout, work: work, products: all, version: all[0].info.Main.Version}
	stamp := setting(all[0].info, "vcs.time")
	var err error
	if r.date, err = time.Parse(time.RFC3339, stamp); err != nil {
		return nil, fmt.Errorf("the build has no commit: the checkout %s must be a repository of git that this user owns", checkout)
	}
	for _, command := range []string{"symfilter", "symfilterd"} {
		here := slices.IndexFunc(all, func(p product) bool { return p.command == command && p.os == runtime.GOOS && p.arch == runtime.GOARCH })
		var p product
		if here >= 0 {
			p = all[here]
		} else if p, err = build(checkout, filepath.Join(work, "here"), command, runtime.GOOS, runtime.GOARCH); err != nil {
			return nil, err
		}
		if err := r.addPages(p); err != nil {
			return nil, err
		}
		if command == "symfilter" {
			if r.symbolizers, err = symbolizersOf(p); err != nil {
				return nil, err
			}
		}
	}
	r.licenses = make(map[string][]byte)
	for i := range all {
		if target := all[i].target(); r.licenses[target] == nil {
			if r.licenses[target], err = r.readLicenses(target); err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

func setting(info *buildinfo.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

// addPages adds the manual page and the completions that a command prints.
func (r *material) addPages(p product) error {
	section := map[string]string{"symfilter": "1", "symfilterd": "8"}[p.command]
	for _, page := range []struct {
		to   string
		args []string
	}{
		{"man/" + p.command + "." + section, []string{"man"}},
		{"completions/" + p.command + ".bash", []string{"completion", "bash"}},
		{"completions/_" + p.command, []string{"completion", "zsh"}},
		{"completions/" + p.command + ".fish", []string{"completion", "fish"}},
	} {
		cmd := exec.Command(p.path, page.args...)
		cmd.Env = []string{fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.date.Unix()), "HOME=" + r.work}
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("%s %s: %w\n%s", p.command, strings.Join(page.args, " "), err, stderr.Bytes())
		}
		r.pages = append(r.pages, file{name: page.to, mode: 0o644, data: out})
	}
	return nil
}

// symbolizersOf returns the names of the programs that symfilter replaces, from the shell
// completion of the command "as".
func symbolizersOf(p product) (names []string, err error) {
	out, err := exec.Command(p.path, "__complete", "as", "").Output()
	if err != nil {
		return nil, fmt.Errorf("%s __complete as: %w", p.command, err)
	}
	for line := range strings.Lines(string(out)) {
		if name := strings.TrimSpace(line); !strings.HasPrefix(name, ":") { // a directive of cobra
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s as answers for no program", p.command)
	}
	return names, nil
}

// readLicenses returns the license texts of Go and of the modules that a target's products
// link, in the order of the modules' names.
func (r *material) readLicenses(target string) ([]byte, error) {
	linked := make(map[string]string) // versions by path
	for _, p := range r.products {
		if p.target() != target {
			continue
		}
		for _, m := range p.info.Deps {
			linked[m.Path] = m.Version
		}
	}
	// Only linked modules are listed, not "all": the checkout's go.sum may lack the sums of other
	// modules, and must not change.
	args := append([]string{"list", "-mod=readonly", "-m", "-f", "{{.Path}}\t{{.Version}}\t{{.Dir}}"}, slices.Sorted(maps.Keys(linked))...)
	list := exec.Command("go", args...)
	list.Dir = r.checkout
	list.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	var stderr bytes.Buffer
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list -m of the linked modules: %w\n%s", err, stderr.Bytes())
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	places := []string{"Go's standard library\t" + r.products[0].info.GoVersion + "\t" + strings.TrimSpace(string(goroot))}
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if len(fields) == 3 && linked[fields[0]] == fields[1] {
			places = append(places, strings.Join(fields, "\t"))
			delete(linked, fields[0])
		}
	}
	if len(linked) > 0 {
		return nil, fmt.Errorf("no license was looked for in %v", linked)
	}
	var b bytes.Buffer
	for _, place := range places {
		fields := strings.Split(place, "\t")
		text, err := licenseIn(fields[2])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", fields[0], err)
		}
		fmt.Fprintf(&b, "==== %s %s\n\n%s\n\n", fields[0], fields[1], bytes.TrimSpace(text))
	}
	return b.Bytes(), nil
}

// licenseIn returns the license text in the folder of a module, with its notice.
func licenseIn(dir string) (text []byte, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name := strings.ToUpper(e.Name())
		if e.Type().IsRegular() && (strings.HasPrefix(name, "LICENSE") || strings.HasPrefix(name, "COPYING") || strings.HasPrefix(name, "NOTICE")) {
			data, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return nil, err
			}
			text = append(append(text, data...), '\n')
		}
	}
	if text == nil {
		return nil, fmt.Errorf("the folder of the module holds no license")
	}
	return text, nil
}
