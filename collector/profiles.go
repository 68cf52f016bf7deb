package collector

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processorhelper/xprocessorhelper"
	"go.opentelemetry.io/collector/processor/xprocessor"

	"github.com/symfilter/symfilter/symbolize"
)

// A profilesProcessor names the locations in the profiles of one pipeline.
type profilesProcessor struct{ life }

func (f *factory) createProfiles(ctx context.Context, set processor.Settings, cfg component.Config, next xconsumer.Profiles) (xprocessor.Profiles, error) {
	p := &profilesProcessor{life{set: set, cfg: cfg.(*Config), factory: f}}
	return xprocessorhelper.NewProfiles(ctx, set, cfg, next, p.processProfiles,
		xprocessorhelper.WithCapabilities(consumer.Capabilities{MutatesData: true}),
		xprocessorhelper.WithStart(p.start),
		xprocessorhelper.WithShutdown(p.shutdown))
}

func (p *profilesProcessor) start(ctx context.Context, host component.Host) error {
	if err := p.begin(ctx, host); err != nil {
		return err
	}
	p.run(true)
	return nil
}

func (p *profilesProcessor) shutdown(ctx context.Context) error {
	if !p.stop() {
		return nil
	}
	return p.release(ctx)
}

// processProfiles names the locations of a batch. Many goroutines may call it. It never fails:
// unnamed locations pass unchanged, and are counted. In mode locate, and after the shutdown, all
// locations pass unchanged: a profile has modules and build IDs already.
func (p *profilesProcessor) processProfiles(_ context.Context, pd pprofile.Profiles) (pprofile.Profiles, error) {
	if !p.enter() {
		return pd, nil
	}
	defer p.leave()
	if p.shared.symbols != nil {
		w := newWaiting(p.live, p.cfg.Patience)
		defer w.end()
		n := newNaming(p.shared, pd.Dictionary(), w)
		n.locations()
		p.shared.addLocations(&n.results)
	}
	return pd, nil
}

// A waiting bounds how long a batch waits for debug files: for local files, and for servers.
type waiting struct {
	local, servers       context.Context // done when the patience for them ends
	endLocal, endServers context.CancelFunc
}

func newWaiting(live context.Context, p Patience) *waiting {
	w := &waiting{}
	w.local, w.endLocal = context.WithTimeout(live, max(p.Local, p.Servers))
	w.servers, w.endServers = context.WithTimeout(live, p.Servers)
	return w
}

func (w *waiting) end() {
	w.endLocal()
	w.endServers()
}

// now returns the policy of the next lookup, and a context that ends its wait.
func (w *waiting) now() (context.Context, symbolize.Policy) {
	switch {
	case w.servers.Err() == nil:
		return w.servers, symbolize.Policy{Wait: symbolize.Servers}
	case w.local.Err() == nil:
		return w.local, symbolize.Policy{Wait: symbolize.Local}
	}
	return w.local, symbolize.Policy{Wait: symbolize.Now}
}

// expired reports whether the time until has passed. The zero time means never.
func expired(until time.Time) bool { return !until.IsZero() && time.Now().After(until) }
