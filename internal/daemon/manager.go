package daemon

import (
	"context"
	"strings"
	"time"
)

const (
	// bound for a filter without progress, if there is no watchdog; a block of 256 KiB takes
	// milliseconds
	stuckWithout = 30 * time.Second

	// interval between checks of the status, if there is no watchdog
	reportEvery = 5 * time.Second

	// duration of a stop after which more time is requested
	slowStop = time.Second
)

// isStuck reports whether a filter of the pipeline has made no progress for longer than the
// duration after plus its patience with debug files. A session that is idle, or waits for input or
// output, is not stuck: a restart would not help.
func (p *pipeline) isStuck(after time.Duration) bool {
	patience := p.stage.Load().conf.Patience
	limit := int64(after) + int64(max(patience.Local, patience.Servers))
	now := p.house.clock()
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := range p.sessions {
		if s.turn.stuck(now, limit) {
			return true
		}
	}
	return false
}

// stuckAfter returns how long a filter may make no progress before it counts as stuck.
func (d *Daemon) stuckAfter() time.Duration {
	if watchdog := d.house.options.Manager.Watchdog(); watchdog > 0 {
		return watchdog / 2
	}
	return stuckWithout
}

func (d *Daemon) begin() {
	d.phase.CompareAndSwap(int32(starting), int32(running))
	var names []string
	for _, p := range d.view.Load().pipelines {
		names = append(names, p.name)
	}
	attrs := []any{"version", d.house.options.Version, "pipelines", strings.Join(names, ", "), "listeners", strings.Join(d.house.ports.addresses(), ", ")}
	if d.house.box != nil {
		attrs = append(attrs, "sandbox", d.house.box.String())
	}
	d.house.log.Info("symfilterd is ready", attrs...)
	d.sent(d.house.options.Manager.Ready(d.status()))
}

// stopping reports to the service manager that the daemon is stopping. If the stop takes longer
// than slowStop, for example because an output is blocked, it requests more time once. The caller
// must call end after the stop.
func (d *Daemon) stopping() (end func()) {
	m := d.house.options.Manager
	d.phase.Store(int32(stopping))
	d.sent(m.Stopping(d.status()))
	slow := time.AfterFunc(slowStop, func() {
		d.sent(m.Extend(stopPatience + slowStop))
		d.sent(m.Status(d.status()))
	})
	return func() { slow.Stop() }
}

// Refresh reloads the configuration from load: see [Daemon.Reload]. It reports the result to the
// service manager, the log and the metrics. After an error, nothing has changed.
func (d *Daemon) Refresh(load func() (*Config, error)) error {
	m := d.house.options.Manager
	d.sent(m.Reloading("reading the configuration"))
	c, err := load()
	if err == nil {
		err = d.Reload(c)
	}
	if err != nil {
		d.house.measures.reloadError.Store(&err)
		d.house.log.Error("the configuration was not reloaded; the previous one stays in use", "error", err)
	} else {
		if reloaded := d.house.options.Reloaded; reloaded != nil {
			reloaded(c)
		}
		d.house.log.Info("the configuration was reloaded")
	}
	d.sent(m.Ready(d.status()))
	return err
}

// manage reports each change of the status to the service manager until ctx is done. It also serves
// the watchdog, if there is one, while no pipeline is stuck.
func (d *Daemon) manage(ctx context.Context) {
	m := d.house.options.Manager
	every := reportEvery
	if m.Watchdog() > 0 {
		every = m.Watchdog() / 2
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	shown, reported := "", ""
	for {
		if text := d.status(); text != shown {
			shown = text
			d.sent(m.Status(text))
		}
		name := d.stuck(d.stuckAfter())
		if name == "" && m.Watchdog() > 0 {
			d.sent(m.Alive())
		}
		if name != "" && name != reported {
			d.house.log.Error("no progress: the watchdog of the service manager, if there is one, gets no signal", "pipeline", name)
		}
		reported = name
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// sent logs the error of a message to the service manager. It logs only the first of consecutive
// errors.
func (d *Daemon) sent(err error) {
	if failed := d.unreached.Swap(err != nil); err != nil && !failed {
		d.house.log.Warn("the service manager could not be reached", "error", err)
	}
}

func (d *Daemon) stuck(after time.Duration) string {
	for _, p := range d.view.Load().pipelines {
		if p.isStuck(after) {
			return p.name
		}
	}
	return ""
}

func (d *Daemon) status() string {
	return status(len(d.view.Load().pipelines), d.problems(time.Now()))
}
