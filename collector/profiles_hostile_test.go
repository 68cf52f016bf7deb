package collector

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

// encoded returns a batch as OTLP. The marshaler modifies its argument.
func encoded(t *testing.T, p pprofile.Profiles) string {
	t.Helper()
	c := pprofile.NewProfiles()
	p.CopyTo(c)
	var m pprofile.ProtoMarshaler
	b, err := m.MarshalProfiles(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// resultsOf returns the processor's counts of locations, by result.
func resultsOf(p *profilesProcessor) map[string]int64 {
	got := make(map[string]int64)
	for r := range p.shared.locations {
		if n := p.shared.locations[r].Load(); n != 0 {
			got[locationResultNames[r]] = n
		}
	}
	return got
}

// withoutAdded returns a batch as OTLP, without the lines of its last location. Its tables of
// functions and strings are cut to the given lengths.
func withoutAdded(t *testing.T, p pprofile.Profiles, functions, strings int) string {
	t.Helper()
	c := pprofile.NewProfiles()
	p.CopyTo(c)
	d := c.Dictionary()
	d.LocationTable().At(d.LocationTable().Len() - 1).Lines().RemoveIf(func(pprofile.Line) bool { return true })
	i := 0
	d.FunctionTable().RemoveIf(func(pprofile.Function) bool { i++; return i > functions })
	d.StringTable().FromRaw(d.StringTable().AsRaw()[:strings])
	return encoded(t, c)
}

// Locations with indexes out of range, values of other types, huge strings or unknown builds must
// pass unchanged, and be counted. A location beside them must still get its name. There are no
// tests of cycles: messages of a profile refer only to other kinds of messages.
func TestHostileProfilesPassUnchanged(t *testing.T) {
	outside := []int32{-1, math.MinInt32, math.MaxInt32, 1000}
	huge := strings.Repeat("/x", 1<<20)
	for _, tt := range []struct {
		name string
		fill func(s *sample)
		want map[string]int64
	}{
		{"mappings out of range", func(s *sample) {
			for _, i := range outside {
				s.location(i, 0x1a25)
			}
		}, map[string]int64{"damaged": 4}},
		{"strings out of range", func(s *sample) {
			for _, i := range outside {
				m := s.mapping("", "aabb", 0x1000, 0x2000, 0)
				s.dict.MappingTable().At(int(m)).SetFilenameStrindex(i)
				s.location(m, 0x1a25)
				a := s.dict.AttributeTable().AppendEmpty()
				a.SetKeyStrindex(i)
				a.SetUnitStrindex(i)
				a.Value().SetStr(ledgerID)
				m = s.mapping("", "", 0x1000, 0x2000, 0)
				s.dict.MappingTable().At(int(m)).AttributeIndices().Append(int32(s.dict.AttributeTable().Len() - 1))
				s.location(m, 0x1a25)
			}
		}, map[string]int64{"no_build_id": 4, "no_file": 4}},
		{"attributes out of range", func(s *sample) {
			m := s.mapping("", "", 0x1000, 0x2000, 0)
			s.dict.MappingTable().At(int(m)).AttributeIndices().Append(outside...)
			s.location(m, 0x1a25).AttributeIndices().Append(outside...)
		}, map[string]int64{"no_build_id": 1}},
		{"functions out of range", func(s *sample) {
			for _, i := range outside {
				l := s.location(0, 0x1a25)
				l.Lines().AppendEmpty().SetFunctionIndex(i)
			}
			f := s.dict.FunctionTable().AppendEmpty()
			f.SetNameStrindex(-7)
			f.SetFilenameStrindex(1 << 30)
			s.location(0, 0x1a25).Lines().AppendEmpty().SetFunctionIndex(1)
		}, map[string]int64{"no_module": 5}},
		{"locations, stacks and links out of range", func(s *sample) {
			s.location(0, 1)
			st := s.dict.StackTable().AppendEmpty()
			st.LocationIndices().Append(outside...)
			st.LocationIndices().Append(1, 1, 1)
			sa := s.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles().AppendEmpty().Samples().AppendEmpty()
			sa.SetStackIndex(-1)
			sa.SetLinkIndex(math.MaxInt32)
			sa.AttributeIndices().Append(outside...)
		}, map[string]int64{"no_module": 1}},
		{"values of other types", func(s *sample) {
			m := s.dict.MappingTable().At(int(s.mapping("", "", 0, 0, 0)))
			for i := range 3 {
				a := s.dict.AttributeTable().AppendEmpty()
				a.SetKeyStrindex(s.str(buildIDAttribute))
				switch i {
				case 0:
					a.Value().SetInt(7)
				case 1:
					a.Value().SetEmptyBytes().Append(1, 2)
				case 2:
					list := a.Value().SetEmptySlice()
					for range 5000 {
						list = list.AppendEmpty().SetEmptySlice()
					}
				}
				m.AttributeIndices().Append(int32(s.dict.AttributeTable().Len() - 1))
			}
			s.location(1, 0x1a25)
		}, map[string]int64{"no_build_id": 1}},
		{"huge strings", func(s *sample) {
			s.location(s.mapping(huge, "aabb", 0x1000, 0x2000, 0), 0x1a25)
			s.location(s.mapping(huge, huge, 0x1000, 0x2000, 0), 0x1a25)
			s.location(s.mapping("a", strings.Repeat("ab", 1<<20), 0x1000, 0x2000, 0), 0x1a25)
			s.location(1, 0x1a25).AttributeIndices().Append(s.attribute(frameTypeAttribute, huge), s.attribute(huge, huge))
		}, map[string]int64{"no_build_id": 2, "no_file": 1, "other": 1}},
		{"addresses at the ends", func(s *sample) {
			for _, a := range []uint64{0, 1, math.MaxUint64} {
				s.location(s.mapping("a", ledgerID, 0, math.MaxUint64, math.MaxUint64), a)
				s.location(s.mapping("a", ledgerID, math.MaxUint64-1, math.MaxUint64, math.MaxUint64), a)
				s.location(s.mapping("a", ledgerID, math.MaxUint64, 0, 1), a)
			}
		}, map[string]int64{"no_symbol": 9}},
		{"no first entries, so that the build ID has the index of no attribute", func(s *sample) {
			d := s.dict
			d.LocationTable().RemoveIf(func(pprofile.Location) bool { return true })
			d.MappingTable().RemoveIf(func(pprofile.Mapping) bool { return true })
			d.FunctionTable().RemoveIf(func(pprofile.Function) bool { return true })
			d.AttributeTable().RemoveIf(func(pprofile.KeyValueAndUnit) bool { return true })
			s.location(0, 0)
			s.location(1, 0)
		}, map[string]int64{"no_build_id": 2}},
		{"thousands of builds", func(s *sample) {
			for i := range 5000 {
				s.location(s.mapping("x.so", fmt.Sprintf("%040x", i+1), 0x1000, 0x2000, 0), 0x2800)
			}
		}, map[string]int64{"no_file": 5000}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := testConfig()
			c.Patience.Local = maxPatience
			p := startProfiles(t, c)
			s := newSample()
			tt.fill(s)
			if s.dict.MappingTable().Len() > 0 {
				tt.want["named"] = 1
			} else {
				s.dict.MappingTable().AppendEmpty()
			}
			named := s.location(s.mapping("", ledgerID, 0, 0, 0), 0x1a25)
			before, functions, strings := encoded(t, s.Profiles), s.dict.FunctionTable().Len(), s.dict.StringTable().Len()
			for range 2 {
				named.Lines().RemoveIf(func(pprofile.Line) bool { return true })
				p.process(t, s.Profiles)
			}
			if withoutAdded(t, s.Profiles, functions, strings) != before {
				t.Error("the rest of the profile has changed")
			}
			for k := range tt.want {
				tt.want[k] *= 2
			}
			if diff := cmp.Diff(tt.want, resultsOf(p)); diff != "" {
				t.Errorf("counts (-want +got):\n%s", diff)
			}
		})
	}
}

// liveHeap returns the bytes that the last collection found in use.
func liveHeap() int64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}

// growth returns the maximum growth of the live heap while f ran, in bytes. It collects often.
func growth(f func()) int64 {
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	runtime.GC()
	runtime.GC()
	before := liveHeap()
	most, done, ended := before, make(chan bool), make(chan bool)
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
				most = max(most, liveHeap())
			}
		}
	}()
	f()
	close(done)
	<-ended
	runtime.GC()
	return max(most, liveHeap()) - before
}

// Naming a batch may take only a bounded amount of memory in addition to the batch itself, whatever
// the batch contains.
func TestHostileProfilesTakeBoundedMemory(t *testing.T) {
	fuzztest.WithoutRace(t)
	n := fuzztest.LongOr(10_000_000, 300_000)
	text := func(i int) string { return string(binary.BigEndian.AppendUint64(nil, uint64(i))) }
	for _, tt := range []struct {
		name string
		fill func(s *sample)
	}{
		{"locations of one build", func(s *sample) {
			m := s.mapping("", ledgerID, 0, 0, 0)
			for i := range n {
				s.location(m, uint64(i))
			}
		}},
		{"locations with names", func(s *sample) {
			m := s.mapping("", ledgerID, 0, 0, 0)
			for i := range n {
				s.location(m, 0x1917+uint64(i%2)*0x10e) // three lines, and two
			}
		}},
		{"strings", func(s *sample) {
			s.location(s.mapping("", ledgerID, 0, 0, 0), 0x1a25)
			for i := range n {
				s.dict.StringTable().Append(text(i))
			}
		}},
		{"functions", func(s *sample) {
			s.location(s.mapping("", ledgerID, 0, 0, 0), 0x1a25)
			for i := range n {
				s.dict.FunctionTable().AppendEmpty().SetStartLine(int64(i))
			}
		}},
		{"mappings", func(s *sample) {
			for i := range n {
				s.dict.MappingTable().AppendEmpty().SetMemoryStart(uint64(i))
				s.location(int32(i+1), 0x1a25)
			}
		}},
		{"builds", func(s *sample) {
			file, key := s.str("/a/file"), s.str(buildIDAttribute)
			for i := range n / 30 {
				a := s.dict.AttributeTable().AppendEmpty()
				a.SetKeyStrindex(key)
				a.Value().SetStr(fmt.Sprintf("%040x", i+1))
				m := s.dict.MappingTable().AppendEmpty()
				m.SetFilenameStrindex(file)
				m.AttributeIndices().Append(int32(i + 1))
				s.location(int32(i+1), 0x1a25)
			}
		}},
		{"builds of a huge name", func(s *sample) {
			huge := strings.Repeat("x", 1<<20)
			for i := range 500 {
				s.location(s.mapping(huge[i:], fmt.Sprintf("%040x", i+1), 0, 0, 0), 0x1a25)
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := testConfig()
			c.Symbols.MaxMemory, c.Patience.Local = minMemory, maxPatience
			p := startProfiles(t, c)
			s := newSample()
			tt.fill(s)
			start := time.Now()
			grown := growth(func() { p.processProfiles(context.Background(), s.Profiles) })
			t.Logf("%d MiB more, %v, %v", grown>>20, resultsOf(p), time.Since(start))
			if most := int64(maxBatch + maxNamed + minMemory); grown > most {
				t.Errorf("the batch took %d MiB, more than %d", grown>>20, most>>20)
			}
			var all int64
			for _, n := range resultsOf(p) {
				all += n
			}
			if got := resultsOf(p)["no_build_id"]; tt.name == "mappings" && got != maxModules {
				t.Errorf("%d mappings were used", got)
			}
			if want := int64(s.dict.LocationTable().Len() - 1); all != want {
				t.Errorf("%d of %d locations are counted", all, want)
			}
			runtime.KeepAlive(s)
		})
	}
}

// If a batch names thousands of builds, a server may get requests for at most 1,000 of them, and
// for 20 more each second: see debuginfod.New.
func TestHostileProfilesAskServersSlowly(t *testing.T) {
	var mu sync.Mutex
	asked, requests := make(map[string]bool), 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		id, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/buildid/"), "/")
		asked[id] = true
		requests++
		http.NotFound(w, r)
	}))
	defer server.Close()
	c := testConfig()
	c.Symbols.DebuginfodURLs, c.Symbols.CacheDirectory = []string{server.URL}, t.TempDir()
	c.Patience = Patience{Local: time.Second, Servers: time.Second}
	p := startProfiles(t, c)
	start := time.Now()
	const builds, batches = 5000, 2
	for range batches {
		s := newSample()
		for i := range builds {
			s.location(s.mapping("x.so", fmt.Sprintf("%040x", i+1), 0x1000, 0x2000, 0), 0x2800)
		}
		before := encoded(t, s.Profiles)
		p.processProfiles(context.Background(), s.Profiles)
		if encoded(t, s.Profiles) != before {
			t.Error("the profile has changed")
		}
	}
	mu.Lock()
	defer mu.Unlock()
	most := 1000 + int(20*time.Since(start).Seconds()) + 1
	t.Logf("%d builds asked for in %d requests, of at most %d; %v", len(asked), requests, most, resultsOf(p))
	if len(asked) > most || requests > 2*most || len(asked) == 0 {
		t.Errorf("a server was asked for %d builds in %d requests; the rate allows %d builds", len(asked), requests, most)
	}
	got := resultsOf(p)
	if n := got["no_file"] + got["pending"]; n != builds*batches {
		t.Errorf("got %v", got)
	}
}
