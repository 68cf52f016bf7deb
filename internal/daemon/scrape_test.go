package daemon

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// /metrics, /readyz and /healthz must work while reloads replace everything that they read. Totals
// must not decrease when a reload removes a pipeline.
func TestMetricsAreReadDuringReloads(t *testing.T) {
	dir := t.TempDir()
	text := func(i int) string {
		return fmt.Sprintf("symbols: {no_default_debug_directories: true, max_memory: %dMiB, cache_directory: DIR/cache}\n"+
			"pipelines:\n  stays: {input: {stdin: true}, output: {file: DIR/out%d.log}}\n  p%d: {input: {files: [DIR/*.in]}, output: {file: DIR/other.log}}\n", 64+i, i%2, i)
	}
	d, _ := started(t, configuration(t, dir, text(0)), Options{Stdin: strings.NewReader(crash)})
	awaitSeries(t, d, "elements_total{result=no_file,tag=bt}")
	done := make(chan struct{})
	var readers sync.WaitGroup
	for _, path := range []string{"/metrics", "/readyz", "/healthz"} {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if got := adminAnswer(t, d, "GET", path); got.Code != 200 {
					t.Errorf("%s: %d %s", path, got.Code, got.Body)
					return
				}
			}
		})
	}
	for i := 1; i <= 20; i++ {
		if err := d.Reload(configuration(t, dir, text(i))); err != nil {
			t.Fatal(err)
		}
	}
	close(done)
	readers.Wait()
	after := metrics(t, d)
	if after["elements_total{result=no_file,tag=bt}"] != 1 || after["memory_limit_bytes"] != 84<<20 {
		t.Errorf("after the reloads: %v", after)
	}
	for name := range after {
		if m := regexp.MustCompile(`put=(p\d+)`).FindStringSubmatch(name); m != nil && m[1] != "p20" {
			t.Errorf("the series %s of a pipeline remains that a reload has removed", name)
		}
	}
}
