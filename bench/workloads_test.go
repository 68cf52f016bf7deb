//go:build linux

package main

import (
	"slices"
	"testing"
)

// Each row must be measurable: its goals parse, and the rows that it refers to precede it.
func TestWorkloads(t *testing.T) {
	b := &binaries{dir: "bench"}
	before := map[string]workload{}
	logs := map[string]string{}
	for _, w := range workloads() {
		if _, ok := before[w.name]; ok {
			t.Errorf("two rows have the name %q", w.name)
		}
		if _, err := parseGoals(w.goals); err != nil {
			t.Errorf("%s: %v", w.name, err)
		}
		if w.of != "" && (w.log != nil || before[w.of].log == nil) {
			t.Errorf("%s: no row before it makes the log of %q, or it makes one itself", w.name, w.of)
		}
		if _, ok := before[w.like]; w.like != "" && (!ok || w.goals != "") {
			t.Errorf("%s: no row %q before it, or it has goals of its own", w.name, w.like)
		}
		if w.daemon != nil && w.against == "" {
			t.Errorf("%s: the table does not say how symfilter runs", w.name)
		}
		if w.log != nil {
			path := b.logPath(w.name)
			if logs[path] != "" {
				t.Errorf("%s and %s have the same log", w.name, logs[path])
			}
			logs[path] = w.name
		}
		before[w.name] = w
	}
}

// The untuned binary has the same rows as radosgw.
func TestUntunedRows(t *testing.T) {
	var like, want []string
	for _, w := range workloads() {
		if w.like != "" {
			like = append(like, w.like)
		}
	}
	for _, w := range append(filters(radosgw, "radosgw", perBinary{}), compressed(radosgw, zlibbed, "radosgw", "", "")...) {
		want = append(want, w.name)
	}
	if !slices.Equal(like, want) {
		t.Errorf("got %q, want %q", like, want)
	}
}

func TestLogPaths(t *testing.T) {
	b := &binaries{dir: "/bench"}
	tests := map[string]string{
		"first frame, vmlinux": "/bench/logs/bench-first-frame-vmlinux.log",
		"5 % frames, 256 MiB":  "/bench/logs/bench-5-frames-256-mib.log",
		"oops, `--image A`":    "/bench/logs/bench-oops-image-a.log",
	}
	for name, want := range tests {
		if got := b.logPath(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}
