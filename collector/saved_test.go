package collector

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

var storageID = component.MustNewID("memory")

// A memory is a storage extension of a Collector, and its client. It keeps data when it is closed.
type memory struct {
	component.StartFunc
	component.ShutdownFunc

	mu      sync.Mutex
	data    map[string]string
	batches int
	open    int
	broken  bool
}

func newMemory() *memory { return &memory{data: make(map[string]string)} }

func (m *memory) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{storageID: m}
}

func (m *memory) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.open++; m.open > 1 {
		return nil, errors.New("the file is open")
	}
	return m, nil
}

func (m *memory) Close(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open--
	return nil
}

func (m *memory) Get(ctx context.Context, key string) ([]byte, error) {
	op := storage.GetOperation(key)
	err := m.Batch(ctx, op)
	return op.Value, err
}

func (m *memory) Set(ctx context.Context, key string, value []byte) error {
	return m.Batch(ctx, storage.SetOperation(key, value))
}

func (m *memory) Delete(ctx context.Context, key string) error {
	return m.Batch(ctx, storage.DeleteOperation(key))
}

func (m *memory) Batch(_ context.Context, ops ...*storage.Operation) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken {
		return errors.New("no space left on device")
	}
	for _, op := range ops {
		switch op.Type {
		case storage.Get:
			if v, ok := m.data[op.Key]; ok {
				op.Value = []byte(v)
			}
		case storage.Set:
			m.data[op.Key] = string(op.Value)
		case storage.Delete:
			delete(m.data, op.Key)
		}
	}
	if ops[0].Type != storage.Get {
		m.batches++
	}
	return nil
}

func (m *memory) Walk(_ context.Context, each storage.WalkFunc) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, value := range m.data {
		if _, err := each(key, []byte(value)); err != nil {
			return err
		}
	}
	return nil
}

// keys returns the processes whose contexts m has.
func (m *memory) keys() (all []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(m.data)) {
		all = append(all, strings.TrimSuffix(strings.TrimPrefix(key, "service.instance.id="), "\x00"))
	}
	return all
}

// killed returns the storage as a killed process leaves it.
func (m *memory) killed() *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &memory{data: maps.Clone(m.data)}
}

func storedConfig() *Config {
	c := testConfig()
	c.Storage = &storageID
	return c
}

// A successor of a killed Collector must resolve frames whose modules only its predecessor has
// seen. The contexts must be written once for each batch.
func TestContextsSurviveARestart(t *testing.T) {
	lines := linesOf(t, "crash.log")
	disk := newMemory()
	p, _ := start(t, storedConfig(), disk)
	ld := batchOf("0", lines[:32]...)
	for i := 1; i < 60; i++ {
		batchOf(fmt.Sprint(i), lines[:32]...).ResourceLogs().MoveAndAppendTo(ld.ResourceLogs())
	}
	consume(t, p, ld)
	if disk.batches != 1 || len(disk.data) != 60 {
		t.Errorf("%d writes of %d contexts, want 1 of 60", disk.batches, len(disk.data))
	}
	q, sink := start(t, storedConfig(), disk.killed())
	for i := range 60 {
		consume(t, q, batchOf(fmt.Sprint(i), lines[33]))
	}
	if got := strings.Count(textOf(sink), "ledger.cc:27:16"); got != 60 {
		t.Errorf("%d of 60 frames are resolved", got)
	}
	consume(t, p, batchOf("0", "{{{reset}}}"))
	if len(disk.data) != 59 {
		t.Errorf("%d contexts after a reset, want 59", len(disk.data))
	}
}

// Records must pass even if the storage fails.
func TestBrokenStorage(t *testing.T) {
	disk := newMemory()
	disk.broken = true
	p, sink := start(t, storedConfig(), disk)
	consume(t, p, batchOf("a", linesOf(t, "crash.log")...))
	if got := textOf(sink); !strings.Contains(got, "ledger.cc:27:16") {
		t.Errorf("got\n%s", got)
	}
}

func TestNoSuchStorage(t *testing.T) {
	p := newLogsProcessor(nopSettings(), storedConfig(), nil, &factory{all: make(map[*Config]*shared)})
	err := p.start(context.Background(), noHost{})
	if err == nil || !strings.Contains(err.Error(), `no storage extension "memory"`) {
		t.Errorf("got %v", err)
	}
	if err := p.shutdown(context.Background()); err != nil {
		t.Error(err)
	}
}

type noHost struct{}

func (noHost) GetExtensions() map[component.ID]component.Component { return nil }

// Pipelines that name one processor must share its storage and its debug files.
func TestPipelinesShareAStorage(t *testing.T) {
	f, c, disk := &factory{all: make(map[*Config]*shared)}, storedConfig(), newMemory()
	var all []*logsProcessor
	for range 2 {
		p := newLogsProcessor(nopSettings(), c, nil, f)
		if err := p.start(context.Background(), disk); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if all[0].shared != all[1].shared || disk.open != 1 {
		t.Errorf("the storage is open %d times", disk.open)
	}
	for i, p := range all {
		if want := 1 - i; disk.open != 1 {
			t.Errorf("open %d times before %d are shut down", disk.open, want)
		}
		if err := p.shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}
	if disk.open != 0 || len(f.all) != 0 {
		t.Errorf("open %d times at the end", disk.open)
	}
}

// Idle processes must be forgotten, including processes whose contexts are only in the storage.
func TestIdleProcessesAreForgotten(t *testing.T) {
	head := linesOf(t, "crash.log")[:32]
	synctest.Test(t, func(t *testing.T) {
		disk := newMemory()
		disk.data["service.instance.id=gone\x00"] = "x"
		c := storedConfig()
		c.IdleTimeout = time.Hour
		p := newLogsProcessor(nopSettings(), c, nil, &factory{all: make(map[*Config]*shared)})
		if err := p.start(context.Background(), disk); err != nil {
			t.Fatal(err)
		}
		defer p.shutdown(context.Background())
		p.do(batchOf("idle", head...))
		p.do(batchOf("busy", head...))
		p.do(batchOf("plain", "0x1 is a number"))
		for range 3 {
			time.Sleep(25 * time.Minute)
			p.do(batchOf("busy", "{{{pc:0x1}}}"))
		}
		synctest.Wait()
		if got := disk.keys(); !slices.Equal(got, []string{"busy"}) || p.shared.contexts.Load() != 1 || p.shared.evicted[evictedIdle].Load() != 1 {
			t.Errorf("stored %q, %d in memory, %d evicted", got, p.shared.contexts.Load(), p.shared.evicted[evictedIdle].Load())
		}
	})
}

// At a limit, the process that was idle for longest must be dropped. Its next record must restore
// the context from the storage. If all processes were active recently, a new process must not be
// remembered.
func TestLimits(t *testing.T) {
	lines := linesOf(t, "crash.log")
	for _, bytes := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			disk := newMemory()
			c := storedConfig()
			if bytes {
				c.MaxContextBytes = 7000 // room for two contexts
			} else {
				c.MaxContexts = 2
			}
			p := newLogsProcessor(nopSettings(), c, nil, &factory{all: make(map[*Config]*shared)})
			if err := p.start(context.Background(), disk); err != nil {
				t.Fatal(err)
			}
			defer p.shutdown(context.Background())
			resolves := func(process string) bool {
				ld := batchOf(process, lines[33])
				p.do(ld)
				return strings.Contains(ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Body().Str(), "ledger.cc:27:16")
			}
			p.do(batchOf("a", lines[:32]...))
			p.do(batchOf("b", lines[:32]...))
			p.do(batchOf("c", lines[:32]...))
			if !resolves("a") || !resolves("b") {
				t.Error("a process in use was dropped for a new one")
			}
			if n := p.shared.evicted[evictedRefused].Load(); n == 0 {
				t.Error("no process was refused")
			}
			if got := p.shared.contexts.Load(); got != 2 {
				t.Errorf("%d contexts, want 2", got)
			}
			time.Sleep(2 * time.Minute)
			if !resolves("b") {
				t.Error("b is forgotten")
			}
			p.do(batchOf("d", lines[:32]...))
			if p.shared.evicted[evictedLimit].Load() == 0 || !resolves("d") || !resolves("b") {
				t.Error("the process idle longest was not dropped for a new one")
			}
			time.Sleep(2 * time.Minute)
			if !resolves("a") {
				t.Error("the context of a was not read again")
			}
		})
	}
}

// Damaged contexts in the storage must not be used.
func TestDamagedContexts(t *testing.T) {
	disk := newMemory()
	disk.data["service.instance.id=a\x00"] = `{"v":1,"modules":[`
	p, sink := start(t, storedConfig(), disk)
	consume(t, p, batchOf("a", linesOf(t, "crash.log")...))
	if got := textOf(sink); !strings.Contains(got, "ledger.cc:27:16") {
		t.Errorf("got\n%s", got)
	}
}
