package collector

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

const (
	// maxKey bounds a key in bytes, since storages refuse long keys. A longer key is cut, and ends
	// with a hash of the whole key.
	maxKey = 1024

	// maxNested bounds the nesting of maps and lists in a key. Only the size of a message bounds
	// their nesting in an attribute.
	maxNested = 8
)

// keys makes the keys of processes from attributes. It makes the resource's part of a key once
// for all records, since there may be many attributes and records.
type keys struct {
	names []string // Config.Key

	resource pcommon.Resource
	entered  bool     // prefix and rest belong to resource
	prefix   []byte   // pairs of the resource
	rest     []string // names that the resource does not have
	all      []byte   // key of records without any of the names; nil until made
	key      []byte
}

// enter makes r the resource of the next records.
func (k *keys) enter(r pcommon.Resource) { k.resource, k.entered = r, false }

// keys.of returns the key of a record with the given attributes, at most maxKey bytes. The key is
// valid until the next call.
func (k *keys) of(record pcommon.Map) []byte {
	if !k.entered {
		k.enterResource()
	}
	k.key = append(k.key[:0], k.prefix...)
	for _, name := range k.rest {
		if v, ok := record.Get(name); ok {
			k.key = appendPair(k.key, name, v, maxNested)
		}
	}
	if len(k.key) > 0 {
		k.key = short(k.key)
		return k.key
	}
	if k.all == nil {
		k.all = short(appendPairs([]byte{}, k.resource.Attributes(), maxNested))
	}
	return k.all
}

func (k *keys) enterResource() {
	k.entered = true
	k.prefix, k.rest, k.all = k.prefix[:0], k.rest[:0], nil
	for _, name := range k.names {
		if v, ok := k.resource.Attributes().Get(name); ok {
			k.prefix = appendPair(k.prefix, name, v, maxNested)
		} else {
			k.rest = append(k.rest, name)
		}
	}
	k.prefix = short(k.prefix)
}

// short returns a key of at most maxKey bytes. A shortened key is in new memory.
func short(key []byte) []byte {
	if len(key) <= maxKey {
		return key
	}
	hash := sha256.Sum256(key)
	const kept = maxKey - 2*len(hash)
	return hex.AppendEncode(append(make([]byte, 0, maxKey), key[:kept]...), hash[:])
}

// appendPair appends NAME=VALUE and a zero byte.
func appendPair(dst []byte, name string, v pcommon.Value, nested int) []byte {
	return append(appendValue(append(append(dst, name...), '='), v, nested), 0)
}

func appendPairs(dst []byte, m pcommon.Map, nested int) []byte {
	for name, v := range m.All() {
		dst = appendPair(dst, name, v, nested)
	}
	return dst
}

// appendValue appends v. It leaves out maps and lists below nested levels.
func appendValue(dst []byte, v pcommon.Value, nested int) []byte {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return append(dst, v.Str()...)
	case pcommon.ValueTypeInt:
		return strconv.AppendInt(dst, v.Int(), 10)
	case pcommon.ValueTypeMap:
		if nested > 0 {
			dst = appendPairs(dst, v.Map(), nested-1)
		}
		return dst
	case pcommon.ValueTypeSlice:
		if nested > 0 {
			for _, v := range v.Slice().All() {
				dst = append(appendValue(dst, v, nested-1), 0)
			}
		}
		return dst
	}
	return append(dst, v.AsString()...)
}
