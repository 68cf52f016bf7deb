package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/symfilter/symfilter/symbolize"
)

// Parse reads a configuration, and sets what it leaves out to its default.
func Parse(text []byte) (*Config, error) {
	c := &Config{
		Log:     Log{Level: "info", Format: "auto"},
		Symbols: Symbols{MaxMemory: symbolize.DefaultMaxMemory},
		Limits:  Limits{Contexts: 10000, ContextBytes: 256 << 20, Connections: 256, Line: 1 << 20, Idle: Duration(time.Hour)},
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(c); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(c.Pipelines) == 0 {
		return nil, errors.New("pipelines: none is given; name at least one, with an input and an output")
	}
	return c, nil
}

// UnmarshalYAML reads "system" or a list.
func (u *URLs) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		if n.Value != "system" {
			return fmt.Errorf("line %d: debuginfod_urls: %q is neither system nor a list of URLs", n.Line, n.Value)
		}
		u.System = true
		return nil
	}
	return n.Decode(&u.List)
}
