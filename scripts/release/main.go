// Release makes the files of a release from a checkout whose commit has a tag. They are programs,
// packages for Debian and for RPM, images, bills of materials and checksums.
//
//	go -C scripts/release run . [-targets linux/amd64,…] [-snapshot] OUTPUT
//
// OUTPUT is a folder that does not exist yet or is empty. The same commit and the same Go give the
// same bytes, wherever the checkout is: all times are the commit's, and all lists are sorted.
//
//	main.go              reasons to refuse, the order of the steps, checksums
//	build.go             the commands for all targets, by scripts/build-static; pages, licenses
//	files.go             tar and gzip with nothing that differs between two runs; the archives
//	packages.go, files/  deb and rpm: places of files, scripts, configuration; for lintian
//	image.go, bom.go     image layouts; bills of materials
//
// nfpm makes the packages. OCI's image-spec has the types of images, and cyclonedx-go the types of
// bills of materials. nfpm is pinned at 2.45, which writes RPMs by google/rpmpack. The go.mod has
// the tool actionlint, too, with which a test checks the workflows.
package main

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

func main() {
	targets := flag.String("targets", strings.Join(allTargets, ","), "the `LIST` of targets, OS/ARCHITECTURE each")
	snapshot := flag.Bool("snapshot", false, "release a commit without a tag")
	checkout := flag.String("checkout", filepath.Join("..", ".."), "the `FOLDER` of the checkout")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: release [-targets LIST] [-snapshot] [-checkout FOLDER] OUTPUT")
		os.Exit(2)
	}
	if err := release(*checkout, flag.Arg(0), strings.Split(*targets, ","), *snapshot); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// released matches the version of a tagged commit.
var released = regexp.MustCompile(`^v\d+\.\d+\.\d+(-(alpha|beta|rc)\.\d+)?$`)

// release writes all files into the folder output.
func release(checkout, output string, targets []string, snapshot bool) error {
	for _, t := range targets {
		if !slices.Contains(allTargets, t) {
			return fmt.Errorf("target %q is unknown; the targets are %s", t, strings.Join(allTargets, ", "))
		}
	}
	if entries, err := os.ReadDir(output); err == nil && len(entries) > 0 {
		return fmt.Errorf("the folder %s is not empty; name another one", output)
	}
	if err := os.MkdirAll(output, 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "symfilter-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)

	all, err := buildAll(checkout, work, targets[:1])
	if err != nil {
		return err
	}
	// check the version now: the builds for the other targets take minutes
	if version := all[0].info.Main.Version; !snapshot {
		if !released.MatchString(version) {
			return fmt.Errorf("the version is %s: tag the commit of a checkout without changes, or use -snapshot", version)
		}
		if err := inChangelog(checkout, version); err != nil {
			return err
		}
	}
	others, err := buildAll(checkout, work, targets[1:])
	if err != nil {
		return err
	}
	r, err := describe(checkout, work, append(all, others...))
	if err != nil {
		return err
	}
	r.output = output
	// The steps run concurrently, since they compress for minutes. They share only r, and do
	// not change it.
	steps := []func() error{r.archives, r.packages, r.images, r.materials}
	failures := make([]error, len(steps))
	var running sync.WaitGroup
	for i, step := range steps {
		running.Go(func() { failures[i] = step() })
	}
	running.Wait()
	if err := errors.Join(failures...); err != nil {
		return err
	}
	return sums(output)
}

// inChangelog returns an error unless the first heading of CHANGELOG.md names the version: "##
// 0.9.0", perhaps with a date in parentheses. For alpha, beta and rc versions, the parentheses
// may hold any text.
func inChangelog(checkout, version string) error {
	data, err := os.ReadFile(filepath.Join(checkout, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	number, stage, _ := strings.Cut(strings.TrimPrefix(version, "v"), "-")
	after := `( \(\d{4}-\d\d-\d\d\))?`
	if stage != "" {
		after = `( \(.*\))?`
	}
	heading := regexp.MustCompile(`(?m)^## .*$`).FindString(string(data))
	if !regexp.MustCompile(`^## ` + regexp.QuoteMeta(number) + after + `$`).MatchString(heading) {
		return fmt.Errorf("the first heading of CHANGELOG.md is %q: before the tag, let it name the version and the date, such as \"## %s (2006-01-02)\"", heading, number)
	}
	return nil
}

// sums writes SHA256SUMS, which sha256sum -c reads.
func sums(dir string) error {
	entries, err := os.ReadDir(dir) // sorted
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(data), e.Name())
	}
	if b.Len() == 0 {
		return errors.New("nothing was made")
	}
	return os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(b.String()), 0o644)
}
