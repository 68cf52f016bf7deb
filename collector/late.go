package collector

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/zap"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/markup"
	"github.com/symfilter/symfilter/symbolize"
)

// Bounds of the addresses that wait for debug files. Further addresses are not sent late.
const (
	maxLateModules = 256 // build IDs
	maxLateFrames  = 256 // addresses of a module in the log of a resource
	maxLateLogs    = 16  // resources with unresolved addresses of a module
)

// lateAttribute marks records sent after the arrival of a debug file.
const lateAttribute = "symfilter.late"

// lateAnswer bounds the time for making and sending the late records of a module.
const lateAnswer = 30 * time.Second

// late sends a record with the names of addresses that earlier records left unresolved, once the
// debug file of their module arrives. Many goroutines may use it.
type late struct {
	p *logsProcessor

	mu   sync.Mutex
	open map[buildid.ID]*lateModule
	wake chan struct{}
}

// A lateModule holds the addresses of one module that have no name yet. They are forgotten after
// idle_timeout.
type lateModule struct {
	name  string
	since time.Time // arrival of the first record
	logs  []lateLog
}

// A lateLog holds the unresolved addresses of a module in the log of one resource.
type lateLog struct {
	resource pcommon.Resource
	places   []latePlace // unresolved addresses in the order of the log, each once
}

type latePlace struct {
	data   bool // not code
	offset uint64
}

func newLate(p *logsProcessor) *late {
	return &late{p: p, open: make(map[buildid.ID]*lateModule), wake: make(chan struct{}, 1)}
}

// wait adds the address of r to the unresolved addresses of a resource. It ignores addresses
// without a build ID, and addresses beyond maxLateModules, maxLateLogs or maxLateFrames.
func (l *late) wait(of pcommon.Resource, r *filter.Resolved) {
	if r.ID.IsZero() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.open[r.ID]
	if m == nil {
		if len(l.open) >= maxLateModules {
			return
		}
		m = &lateModule{name: r.Module, since: time.Now()}
		l.open[r.ID] = m
	}
	log := m.log(of)
	if log == nil || len(log.places) >= maxLateFrames {
		return
	}
	place := latePlace{r.Tag == markup.TagData, r.Offset}
	for _, other := range log.places {
		if other == place {
			return
		}
	}
	log.places = append(log.places, place)
}

// log returns the lateLog of a resource, or nil if there are too many.
func (m *lateModule) log(of pcommon.Resource) *lateLog {
	for i := range m.logs {
		if m.logs[i].resource.Attributes().Equal(of.Attributes()) {
			return &m.logs[i]
		}
	}
	if len(m.logs) >= maxLateLogs {
		return nil
	}
	resource := pcommon.NewResource()
	of.CopyTo(resource)
	m.logs = append(m.logs, lateLog{resource: resource})
	return &m.logs[len(m.logs)-1]
}

// came wakes run when a debug file has arrived. It does not wait for run.
func (l *late) came() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run sends records until the processor ends. It also checks all modules with unresolved addresses
// every second, since a file may arrive while the first record with its module is being filtered.
func (l *late) run() {
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for {
		select {
		case <-l.wake:
		case <-again.C:
		case <-l.p.live.Done():
			return
		}
		for _, id := range l.ready() {
			l.send(id)
		}
	}
}

// ready returns the build IDs of the modules with unresolved addresses whose files have arrived. It
// forgets modules whose files are missing for longer than idle_timeout.
func (l *late) ready() (all []buildid.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, m := range l.open {
		if r := l.p.shared.symbols.Symbolizer.Report(id, m.name); r.Path != "" && !r.Pending {
			all = append(all, id)
		} else if time.Since(m.since) > l.p.cfg.IdleTimeout {
			delete(l.open, id)
		}
	}
	return all
}

// send sends a late record for each log that has unresolved addresses in the module with the build
// ID id.
func (l *late) send(id buildid.ID) {
	l.mu.Lock()
	m := l.open[id]
	delete(l.open, id)
	l.mu.Unlock()
	if m == nil {
		return
	}
	ctx, cancel := context.WithTimeout(l.p.live, lateAnswer)
	defer cancel()
	for _, log := range m.logs {
		ld := plog.NewLogs()
		rl := ld.ResourceLogs().AppendEmpty()
		log.resource.CopyTo(rl.Resource())
		record := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
		l.fill(ctx, record, id, m.name, log.places)
		l.p.shared.lateRecords.Add(1)
		if err := l.p.next.ConsumeLogs(ctx, ld); err != nil && ctx.Err() == nil {
			l.p.set.Logger.Warn("the next consumer has refused a record with late names", zap.Error(err))
		}
	}
}

// fill sets the times, the attributes and the body of a module's record.
func (l *late) fill(ctx context.Context, record plog.LogRecord, id buildid.ID, name string, places []latePlace) {
	now := pcommon.NewTimestampFromTime(time.Now())
	record.SetTimestamp(now)
	record.SetObservedTimestamp(now)
	record.Attributes().PutBool(lateAttribute, true)
	list := record.Attributes().PutEmptySlice(framesAttribute)
	var text strings.Builder
	fmt.Fprintf(&text, "late names for %s (BuildId: %s)", name, id)
	for _, place := range places {
		r := filter.Resolved{Offset: place.offset, Module: name, ID: id}
		at := symbolize.Location{ID: id, Name: name, Addr: place.offset}
		fmt.Fprintf(&text, "\n+%#x", place.offset)
		if place.data {
			v, err := l.p.shared.symbols.Symbolizer.AskData(ctx, at, symbolize.Policy{})
			if r.Err = err; err == nil {
				r.Variable = &v
				fmt.Fprintf(&text, " %s%s", v.Name, v.Member)
			}
		} else {
			r.Frames, r.Err = l.p.shared.symbols.Symbolizer.Ask(ctx, nil, at, symbolize.Policy{})
			for i := range r.Frames {
				fmt.Fprintf(&text, " %s %s:%d:%d", r.Frames[i].Func, r.Frames[i].File, r.Frames[i].Line, r.Frames[i].Column)
			}
		}
		putAnswer(list.AppendEmpty().SetEmptyMap(), &r)
	}
	record.Body().SetStr(text.String())
}
