//go:build linux

package endtoend

import (
	"compress/gzip"
	"debug/elf"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/symfilter/symfilter/internal/idtest"
	"github.com/symfilter/symfilter/internal/testenv"
)

const (
	profileSeconds = 20     // length of a measured run, one batch a second
	profileSamples = 10_000 // samples of a batch
	profileStacks  = 3_000  // stacks of a batch, with 30 frames each
	profilePlaces  = 5_000  // different addresses of the program
)

// A Collector receives a batch of 10,000 samples each second, and passes it on by OTLP. RATE=N
// makes N runs without symfilter and N runs with it, alternating. The profiled program is radosgw,
// from the folder of the benchmarks. The test logs the Collector's processor time and memory.
func TestProfileRates(t *testing.T) {
	runs, err := strconv.Atoi(os.Getenv("RATE"))
	if err != nil {
		t.Skip("RATE is not a number of runs: a measurement, for a machine that does nothing else")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	file := testenv.Find(t, filepath.Join(home, ".cache", "symfilter-bench", "bins", "rgw.debug"))
	batch := randomProfile(t, file)
	for _, compression := range []string{"gzip", "none"} {
		var share, peak [2][]float64
		for range runs {
			for with := range 2 {
				cpu, memory := profileRun(t, file, batch, compression, with == 1)
				share[with], peak[with] = append(share[with], 100*cpu/profileSeconds), append(peak[with], memory)
			}
		}
		t.Logf("compression %s: %% of a processor without symfilter %.1f, with %.1f, difference of medians %.1f; peak MiB without %.0f, with %.0f",
			compression, share[0], share[1], median(share[1])-median(share[0]), peak[0], peak[1])
	}
}

// randomProfile returns a batch with stacks of random addresses in the code of a file.
func randomProfile(t *testing.T, file string) pprofile.Profiles {
	t.Helper()
	f, err := elf.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text := f.Section(".text")
	random := rand.New(rand.NewPCG(1, 2))
	p := pprofile.NewProfiles()
	b := tables{p.Dictionary()}
	b.begin()
	m := b.mapping(file, idtest.Of(t, file).String(), 0, 0, 0)
	for range profilePlaces {
		l := p.Dictionary().LocationTable().AppendEmpty()
		l.SetMappingIndex(m)
		l.SetAddress(text.Addr + random.Uint64N(text.Size))
	}
	for range profileStacks {
		stack := p.Dictionary().StackTable().AppendEmpty().LocationIndices()
		for range 30 {
			stack.Append(1 + random.Int32N(profilePlaces))
		}
	}
	profile := p.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles().AppendEmpty()
	for range profileSamples {
		s := profile.Samples().AppendEmpty()
		s.SetStackIndex(1 + random.Int32N(profileStacks))
		s.Values().Append(1)
	}
	return p
}

// profileRun returns the processor time in seconds that a Collector takes for profileSeconds
// batches after a warm-up, and its peak memory in MiB.
func profileRun(t *testing.T, file string, batch pprofile.Profiles, compression string, with bool) (cpu, peak float64) {
	t.Helper()
	var arrived, named atomic.Int64
	sink := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := io.Reader(r.Body)
		if r.Header.Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(r.Body)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			body = z
		}
		data, _ := io.ReadAll(body)
		if strings.Contains(string(data), "RGW") {
			named.Add(1)
		}
		arrived.Add(1)
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	defer sink.Close()
	address := testenv.FreeAddress(t)
	tree := filepath.Join(t.TempDir(), "debug")
	id := idtest.Of(t, file).String()
	if err := os.MkdirAll(filepath.Join(tree, ".build-id", id[:2]), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, filepath.Join(tree, ".build-id", id[:2], id[2:]+".debug")); err != nil {
		t.Fatal(err)
	}
	config := strings.Replace(profilesConfig(address, "", tree), toFile(""),
		"exporters:\n  otlp_http:\n    endpoint: "+sink.URL+"\n    compression: "+compression+"\n", 1)
	config = strings.Replace(config, "        - file\n", "        - otlp_http\n", 1)
	if !with {
		config = strings.Replace(config, "      processors:\n        - symfilter\n", "", 1)
	}
	c := startCollector(t, config)
	post := func() {
		if !send(t, address, batch) {
			t.Fatalf("a batch is not accepted\n%s", c.log)
		}
	}
	const warm = 3
	for i := range warm {
		post()
		eventually(t, "the Collector is warm", func() bool { return arrived.Load() > int64(i) }, c.log)
	}
	before := c.processorTime()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for range profileSeconds {
		post()
		<-ticker.C
	}
	eventually(t, "all batches have come", func() bool { return arrived.Load() >= warm+profileSeconds }, c.log)
	cpu = c.processorTime() - before
	if with && named.Load() < profileSeconds {
		t.Errorf("%d of %d batches have names", named.Load(), profileSeconds)
	}
	peak = float64(testenv.PeakMemory(t, c.cmd.Process.Pid)) / (1 << 20)
	c.kill()
	return cpu, peak
}

// processorTime returns the seconds of processor time that the Collector has taken.
func (c *collector) processorTime() float64 {
	c.t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.cmd.Process.Pid))
	if err != nil {
		c.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // after the name
	fields := strings.Fields(rest)
	var ticks float64
	for _, f := range fields[11:13] { // ticks in user and in kernel mode, 100 a second
		n, err := strconv.ParseFloat(f, 64)
		if err != nil {
			c.t.Fatal(err)
		}
		ticks += n
	}
	return ticks / 100
}
