package daemon

import (
	"fmt"
	"strings"
	"time"
)

// blockedTooLong bounds how long an output may block while the daemon counts as ready.
const blockedTooLong = 30 * time.Second

type phase int32

const (
	starting phase = iota
	running
	stopping
)

// A problem needs an operator's attention.
type problem struct {
	Part     string `json:"part"` // daemon, configuration, input, output or filter
	Pipeline string `json:"pipeline,omitempty"`
	Problem  string `json:"problem"`
	Ready    bool   `json:"ready"` // the daemon works despite the problem
}

// problems returns the current problems: first of the whole daemon, then of each pipeline by name.
// It takes only locks that are never held during a wait for an input, an output or a reload.
func (d *Daemon) problems(now time.Time) (all []problem) {
	switch phase(d.phase.Load()) {
	case starting:
		all = append(all, problem{Part: "daemon", Problem: "starting"})
	case stopping:
		all = append(all, problem{Part: "daemon", Problem: "stopping"})
	}
	if err := d.house.measures.reloadError.Load(); err != nil {
		// The previous configuration still works. A mistake in a file must not become an outage.
		all = append(all, problem{Part: "configuration", Problem: (*err).Error(), Ready: true})
	}
	for _, p := range d.view.Load().pipelines {
		p.mu.Lock()
		trouble, unsaved := p.trouble, p.unsaved
		p.mu.Unlock()
		if unsaved != nil {
			all = append(all, problem{Part: "input", Pipeline: p.name, Problem: "no checkpoint is kept: " + unsaved.Error(), Ready: true})
		}
		if trouble != nil {
			all = append(all, problem{Part: "input", Pipeline: p.name, Problem: trouble.Error()})
		}
		if text := p.outputProblem(now); text != "" {
			all = append(all, problem{Part: "output", Pipeline: p.name, Problem: text})
		}
		if p.isStuck(d.stuckAfter()) {
			all = append(all, problem{Part: "filter", Pipeline: p.name, Problem: "no progress: a file system of debug files does not answer, or this is a bug (report the stack trace that SIGQUIT prints)"})
		}
	}
	return all
}

// outputProblem returns the problem of the output, or "" if the output works.
func (p *pipeline) outputProblem(now time.Time) string {
	_, stalled, failed := p.counts.writes.state(now)
	_, trying := p.stage.Load().attempts()
	switch {
	case trying != nil:
		return "failing: " + trying.Error()
	case stalled >= blockedTooLong:
		return fmt.Sprintf("blocked for %d s", int(stalled.Seconds()))
	case failed != nil:
		return "failing: " + failed.Error()
	}
	return ""
}

func isReady(all []problem) bool {
	for _, p := range all {
		if !p.Ready {
			return false
		}
	}
	return true
}

// status describes n pipelines and the problems in one line.
func status(n int, all []problem) string {
	text := fmt.Sprintf("%d pipelines", n)
	if n == 1 {
		text = "1 pipeline"
	}
	for _, p := range all {
		text += "; " + strings.Join(append(p.where(), p.Problem), ": ")
	}
	return text
}

// where returns the prefix of p in the status, as a slice: "PART of PIPELINE", or "the last reload
// has failed" for the configuration. The slice is empty for the daemon itself.
func (p *problem) where() []string {
	switch {
	case p.Pipeline != "":
		return []string{p.Part + " of " + p.Pipeline}
	case p.Part == "configuration":
		return []string{"the last reload has failed"}
	}
	return nil
}
