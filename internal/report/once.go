package report

// maxOnce bounds the messages that a Once remembers.
const maxOnce = 1 << 10

// A Once passes each different message to To once, up to maxOnce messages. If To is nil, it passes
// none. A Once is not safe for concurrent use.
type Once struct {
	To   func(message string)
	told map[string]bool
}

// Report passes on a message that was not passed before, up to maxOnce messages.
func (o *Once) Report(message string) {
	if o.To == nil || o.told[message] || len(o.told) >= maxOnce {
		return
	}
	if o.told == nil {
		o.told = make(map[string]bool)
	}
	o.told[message] = true
	o.To(message)
}
