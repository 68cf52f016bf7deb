package collector

import (
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// keys makes the keys of processes from attributes.
type keys struct {
	names []string // Config.Key

	resource pcommon.Resource
	entered  bool     // prefix and rest are those of resource
	prefix   []byte   // pairs of the resource
	rest     []string // names that the resource does not have
	key      []byte
}

// enter makes r the resource of the next records.
func (k *keys) enter(r pcommon.Resource) { k.resource, k.entered = r, false }

// of returns the key of a record with the given attributes. It is valid until the next call.
func (k *keys) of(record pcommon.Map) []byte {
	if !k.entered {
		k.enterResource()
	}
	k.key = append(k.key[:0], k.prefix...)
	for _, name := range k.rest {
		if v, ok := record.Get(name); ok {
			k.key = appendPair(k.key, name, v)
		}
	}
	if len(k.key) == 0 {
		for name, v := range k.resource.Attributes().All() {
			k.key = appendPair(k.key, name, v)
		}
	}
	return k.key
}

func (k *keys) enterResource() {
	k.entered = true
	k.prefix, k.rest = k.prefix[:0], k.rest[:0]
	for _, name := range k.names {
		if v, ok := k.resource.Attributes().Get(name); ok {
			k.prefix = appendPair(k.prefix, name, v)
		} else {
			k.rest = append(k.rest, name)
		}
	}
}

// appendPair appends NAME=VALUE and a zero byte.
func appendPair(dst []byte, name string, v pcommon.Value) []byte {
	dst = append(append(dst, name...), '=')
	switch v.Type() {
	case pcommon.ValueTypeStr:
		dst = append(dst, v.Str()...)
	case pcommon.ValueTypeInt:
		dst = strconv.AppendInt(dst, v.Int(), 10)
	default:
		dst = append(dst, v.AsString()...)
	}
	return append(dst, 0)
}
