package daemon

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// An object is a JSON object, whose members are printed in alphabetical order.
type object = map[string]any

// Schema returns the JSON schema (draft 2020-12) of the configuration file, made from [Sections].
// Every file that [Parse] accepts matches the schema. Only Parse reports conflicts between
// sections, such as two pipelines with one address.
func Schema() []byte {
	defs := object{}
	for _, s := range Sections() {
		if s.Path != "" {
			defs[definition(s.of)] = s.schema()
		} else {
			defs[""] = s.schema()
		}
	}
	whole := defs[""].(object)
	delete(defs, "")
	whole["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	whole["title"] = "Configuration of symfilterd"
	whole["$defs"] = defs
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	e.Encode(whole) // cannot fail for maps of strings, numbers and booleans
	return b.Bytes()
}

func definition(t reflect.Type) string { return strings.ToLower(t.Name()) }

func (s *Section) schema() object {
	properties := object{}
	var required []string
	dependent := object{}
	for i := range s.Keys {
		k := &s.Keys[i]
		properties[k.Name] = k.schema(s)
		if k.section && k.least > 0 {
			required = append(required, k.Name)
		}
		if k.With != nil {
			dependent[k.Name] = object{"anyOf": requiring(k.With)}
		}
	}
	o := object{"type": "object", "description": plain(s.Text), "properties": properties, "additionalProperties": false}
	if required != nil {
		o["required"] = required
	}
	if len(dependent) > 0 {
		o["dependentSchemas"] = dependent
	}
	if s.One != nil {
		o["oneOf"] = requiring(s.One)
	}
	if s.Any != nil {
		o["anyOf"] = requiring(s.Any)
	}
	if s.of == kindOf[TLS]() {
		o["dependentRequired"] = object{"certificate": []string{"key"}, "key": []string{"certificate"}}
	}
	return o
}

// requiring returns schemas that each require one of the keys.
func requiring(names []string) (all []object) {
	for _, name := range names {
		all = append(all, object{"required": []string{name}})
	}
	return all
}

// Forms of values, as regular expressions.
const (
	sizePattern     = `^[0-9]+(KiB|MiB|GiB)?$`
	durationPattern = `^\+?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`
	modePattern     = `^(0o)?0*[1-7][0-7]{0,2}$`
	namePattern     = `^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`
)

func (k *Key) schema(s *Section) object {
	o := k.values(s)
	o["description"] = plain(k.Text)
	switch {
	case k.Default == "":
	case k.kind.Kind() == reflect.Bool:
		o["default"] = k.Default == "true"
	case k.kind.Kind() == reflect.Int:
		o["default"], _ = strconv.Atoi(k.Default)
	default:
		o["default"] = k.Default
	}
	return o
}

// values returns the schema of a key's value, without description and default.
func (k *Key) values(s *Section) object {
	text := object{"type": "string", "minLength": 1}
	list := object{"type": "array", "items": text, "minItems": k.least, "maxItems": k.most}
	switch k.kind {
	case kindOf[Size]():
		return object{"type": []string{"integer", "string"}, "minimum": k.least, "maximum": k.most, "pattern": sizePattern}
	case kindOf[Duration]():
		return object{"type": []string{"integer", "string"}, "minimum": 0, "maximum": 0, "pattern": durationPattern}
	case kindOf[Mode]():
		return object{"type": []string{"integer", "string"}, "minimum": 1, "maximum": 777, "pattern": modePattern}
	case kindOf[StartAt]():
		return object{"type": "string", "pattern": `^(beginning|end)$|` + durationPattern}
	case kindOf[URLs]():
		return object{"anyOf": []object{{"const": "system"}, list}}
	case kindOf[map[string]Pipeline]():
		return object{"type": "object", "minProperties": 1, "maxProperties": k.most,
			"propertyNames":        object{"pattern": namePattern},
			"additionalProperties": object{"$ref": "#/$defs/" + definition(kindOf[Pipeline]())}}
	}
	switch {
	case k.kind.Kind() == reflect.Pointer:
		return object{"$ref": "#/$defs/" + definition(k.kind.Elem())}
	case k.section:
		return object{"$ref": "#/$defs/" + definition(k.kind)}
	case k.kind.Kind() == reflect.Slice:
		return list
	case k.kind.Kind() == reflect.Int:
		return object{"type": "integer", "minimum": k.least, "maximum": k.most}
	case k.kind.Kind() == reflect.Bool && slices.Contains(s.One, k.Name):
		return object{"const": true}
	case k.kind.Kind() == reflect.Bool:
		return object{"type": "boolean"}
	case k.Words != nil:
		return object{"enum": k.Words}
	}
	return text
}

// plain removes Markdown's backquotes from text.
func plain(text string) string { return strings.ReplaceAll(text, "`", "") }
